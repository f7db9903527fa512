package example;

import com.zaxxer.hikari.HikariDataSource;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import org.springframework.amqp.core.BatchMessageListener;
import org.springframework.amqp.core.MessageListener;
import org.springframework.amqp.rabbit.connection.CachingConnectionFactory;
import org.springframework.amqp.rabbit.connection.ConnectionFactory;
import org.springframework.amqp.rabbit.listener.SimpleMessageListenerContainer;
import org.springframework.beans.factory.annotation.Value;
import org.springframework.boot.SpringApplication;
import org.springframework.boot.autoconfigure.SpringBootApplication;
import org.springframework.context.annotation.Bean;
import org.springframework.util.StringUtils;
import sun.misc.Signal;

@SpringBootApplication
public class Bench {

    public static void main(String[] args) {
        var context = SpringApplication.run(Bench.class, args);
        // The shutdown hook alone would end a JVM that gets SIGTERM with 143.
        Signal.handle(new Signal("TERM"), signal -> System.exit(SpringApplication.exit(context)));
        System.out.println("ready"); // the container's start waits until its consumers have subscribed
    }

    /** The property spring.rabbitmq.addresses would not decode a virtual host; the client's own URI does. */
    @Bean
    ConnectionFactory connectionFactory(@Value("${BENCH_AMQP_URL}") URI url) {
        return new CachingConnectionFactory(url);
    }

    @Bean
    HikariDataSource dataSource(@Value("${BENCH_MYSQL_URL}") URI url,
            @Value("${BENCH_CONCURRENCY}") int concurrency, @Value("${BENCH_BATCH:1}") int batch) {
        var source = new HikariDataSource();
        source.setJdbcUrl("jdbc:mysql://" + url.getRawAuthority().replaceFirst("^.*@", "") + url.getRawPath()
                // The driver would take TLS by itself where the server offers it; no other contestant does.
                + "?sslMode=DISABLED&allowPublicKeyRetrieval=true"
                // What HikariCP recommends for MySQL. Server-side statements only one by one: a rewritten batch is a
                // statement of its own for each size, too long for the cache, and would be prepared each time.
                + "&useServerPrepStmts=" + (batch == 1) + "&cachePrepStmts=true&prepStmtCacheSize=250"
                + "&prepStmtCacheSqlLimit=2048&rewriteBatchedStatements=true&useLocalSessionState=true"
                + "&cacheResultSetMetadata=true&cacheServerConfiguration=true&elideSetAutoCommits=true"
                + "&maintainTimeStats=false");
        var user = (url.getRawUserInfo() == null ? "" : url.getRawUserInfo()).split(":", 2);
        source.setUsername(StringUtils.uriDecode(user[0], StandardCharsets.UTF_8));
        source.setPassword(user.length == 1 ? "" : StringUtils.uriDecode(user[1], StandardCharsets.UTF_8));
        source.setMaximumPoolSize(concurrency);
        source.setTransactionIsolation("TRANSACTION_READ_COMMITTED");
        // Everything here is in a transaction: so none has to switch autocommit off and on again, two round trips each.
        source.setAutoCommit(false);
        return source;
    }

    /**
     * The acknowledge mode is AUTO, the default: the container acks when the listener has returned. The transaction is
     * inside the listener, so that is after the commit. A listener that throws gives its messages back to the queue.
     */
    @Bean
    SimpleMessageListenerContainer container(ConnectionFactory connectionFactory, Points points,
            @Value("${BENCH_QUEUE}") String queue, @Value("${BENCH_CONCURRENCY}") int concurrency,
            @Value("${BENCH_BATCH:1}") int batch) {
        var container = new SimpleMessageListenerContainer(connectionFactory);
        container.setQueueNames(queue);
        container.setConcurrentConsumers(concurrency);
        if (batch == 1) {
            container.setMessageListener((MessageListener) points::one);
        } else {
            container.setConsumerBatchEnabled(true);
            container.setBatchSize(batch);
            container.setReceiveTimeout(20); // an idle queue: a short batch goes after this many milliseconds
            container.setBatchReceiveTimeout(50); // a slow one: no batch is gathered for longer
            container.setPrefetchCount(Math.max(250, 2 * batch)); // the next batch is here when this one is done
            container.setMessageListener((BatchMessageListener) points::batch);
        }
        return container;
    }
}

package example;

import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.security.NoSuchAlgorithmException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.function.Consumer;
import java.util.function.Function;
import org.slf4j.Logger;
import org.slf4j.LoggerFactory;
import org.springframework.amqp.core.Message;
import org.springframework.dao.DataAccessResourceFailureException;
import org.springframework.dao.DuplicateKeyException;
import org.springframework.dao.RecoverableDataAccessException;
import org.springframework.dao.TransientDataAccessException;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.stereotype.Component;
import org.springframework.transaction.PlatformTransactionManager;
import org.springframework.transaction.TransactionException;
import org.springframework.transaction.TransactionStatus;
import org.springframework.transaction.support.TransactionTemplate;
import tools.jackson.databind.json.JsonMapper;

/** The handler: awards points for paid orders, each business key once. */
@Component
class Points {

    private static final Logger log = LoggerFactory.getLogger(Points.class);

    private static final String INBOX =
            "INSERT INTO inbox (handler, business_key, fingerprint, event_id, state, decided_at)"
                    + " VALUES ('points', ?, ?, ?, 0, UTC_TIMESTAMP(6))";
    /**
     * For a batch. The driver makes one INSERT of the rows of a VALUES and then has no count for each. Of a SELECT it
     * makes many statements in one packet, and each count tells whether that row is new.
     */
    private static final String INBOX_IF_NEW =
            "INSERT IGNORE INTO inbox (handler, business_key, fingerprint, event_id, state, decided_at)"
                    + " SELECT 'points', ?, ?, ?, 0, UTC_TIMESTAMP(6)";
    private static final String STORED =
            "SELECT business_key, fingerprint FROM inbox WHERE handler = 'points' AND business_key IN (%s)";
    private static final String LEDGER =
            "INSERT INTO points_ledger (receipt_no, order_id, user_id, points) VALUES (?, ?, ?, ?)";
    private static final String ACCOUNT = "UPDATE points_account SET points = points + ? WHERE user_id = ?";
    private static final String OUTBOX =
            "INSERT INTO outbox (event_id, event_type, business_key, payload, created_at)"
                    + " VALUES (?, 'points.awarded', ?, ?, UTC_TIMESTAMP(6))";

    record OrderPaid(long orderId, long userId, long amount, String receiptNo) {}

    record PointsAwarded(long orderId, long userId, long points) {}

    record Event(String key, byte[] fingerprint, String id, OrderPaid order, byte[] payload) {}

    private final JdbcTemplate jdbc;
    private final TransactionTemplate transaction;
    private final JsonMapper json;

    Points(JdbcTemplate jdbc, PlatformTransactionManager transactions, JsonMapper json) {
        this.jdbc = jdbc;
        this.transaction = new TransactionTemplate(transactions);
        this.json = json;
    }

    /** One message, one transaction. */
    void one(Message message) {
        var event = read(message);
        untilDone(status -> {
            try {
                jdbc.update(INBOX, event.key(), event.fingerprint(), event.id());
            } catch (DuplicateKeyException e) {
                compare(event, stored(List.of(event)).get(event.key()));
                status.setRollbackOnly();
                return;
            }
            var order = event.order();
            jdbc.update(LEDGER, order.receiptNo(), order.orderId(), order.userId(), order.amount());
            hasAccount(jdbc.update(ACCOUNT, order.amount(), order.userId()), order.userId());
            jdbc.update(OUTBOX, "points:" + event.key(), event.key(), event.payload());
        });
    }

    /** One batch, one transaction. */
    void batch(List<Message> messages) {
        try {
            var events = new TreeMap<String, Event>(); // by key: consumers that share keys lock them in the same order
            for (var message : messages) {
                var event = read(message);
                var earlier = events.putIfAbsent(event.key(), event);
                if (earlier != null) {
                    compare(event, earlier.fingerprint());
                }
            }
            untilDone(status -> apply(events.values()));
        } catch (RuntimeException e) {
            // One bad message must not take its batch along to the delivery limit of the queue: apply the good ones.
            // When the batch comes back they are duplicates.
            log.warn("a batch of {} failed, now one by one", messages.size(), e);
            messages.forEach(message -> {
                try {
                    one(message);
                } catch (RuntimeException bad) {
                    e.addSuppressed(bad);
                }
            });
            if (e.getSuppressed().length > 0) {
                throw e;
            }
        }
    }

    private void apply(Collection<Event> events) {
        var fresh = insertNew(events);
        if (fresh.isEmpty()) {
            return;
        }
        var points = new TreeMap<Long, Long>(); // by user, in one order for all consumers too
        for (var event : fresh) {
            points.merge(event.order().userId(), event.order().amount(), Math::addExact);
        }
        jdbc.batchUpdate(LEDGER, rows(fresh, e -> new Object[] {
            e.order().receiptNo(), e.order().orderId(), e.order().userId(), e.order().amount()}));
        var users = List.copyOf(points.keySet());
        var counts = jdbc.batchUpdate(ACCOUNT, rows(users, user -> new Object[] {points.get(user), user}));
        for (int i = 0; i < counts.length; i++) {
            hasAccount(counts[i], users.get(i));
        }
        jdbc.batchUpdate(OUTBOX, rows(fresh, e -> new Object[] {"points:" + e.key(), e.key(), e.payload()}));
    }

    /**
     * Writes the inbox and tells which events are new. A row that another consumer has not committed yet makes this
     * wait. Nothing written is undone for a duplicate: that would make deadlocks among those that wait for it.
     */
    private List<Event> insertNew(Collection<Event> events) {
        var all = List.copyOf(events);
        var counts = jdbc.batchUpdate(INBOX_IF_NEW, rows(all, e -> new Object[] {e.key(), e.fingerprint(), e.id()}));
        var fresh = new ArrayList<Event>();
        var known = new ArrayList<Event>();
        for (int i = 0; i < counts.length; i++) {
            (counts[i] == 1 ? fresh : known).add(all.get(i));
        }
        if (!known.isEmpty()) {
            var stored = stored(known);
            known.forEach(event -> compare(event, stored.get(event.key())));
        }
        return fresh;
    }

    /**
     * Does the transaction until it ends well or with an error of its own. A commit cut off with its connection may
     * have happened: then the next try finds the key.
     */
    private void untilDone(Consumer<TransactionStatus> work) {
        while (true) {
            try {
                transaction.executeWithoutResult(work);
                return;
            } catch (TransientDataAccessException e) {
                log.debug("again", e); // a deadlock or a lock wait
            } catch (RecoverableDataAccessException | DataAccessResourceFailureException | TransactionException e) {
                log.warn("again: {}", e.toString()); // a lost connection; the pool waits for a new one
            }
        }
    }

    private Map<String, byte[]> stored(List<Event> events) {
        var found = new HashMap<String, byte[]>();
        var marks = String.join(", ", Collections.nCopies(events.size(), "?"));
        jdbc.query(STORED.formatted(marks), row -> {
            found.put(new String(row.getBytes(1), StandardCharsets.UTF_8), row.getBytes(2));
        }, events.stream().map(Event::key).toArray());
        return found;
    }

    private Event read(Message message) {
        var properties = message.getMessageProperties();
        if (!"order.paid".equals(properties.getHeader("event-type"))) {
            throw new IllegalArgumentException("no handler for the event type of " + properties.getMessageId());
        }
        var order = json.readValue(message.getBody(), OrderPaid.class);
        var payload = json.writeValueAsBytes(new PointsAwarded(order.orderId(), order.userId(), order.amount()));
        return new Event("order:" + order.orderId() + ":paid", sha256(message.getBody()), properties.getMessageId(),
                order, payload);
    }

    private static void compare(Event event, byte[] stored) {
        if (!Arrays.equals(event.fingerprint(), stored)) {
            throw new IllegalStateException("conflict: " + event.key() + " has another body elsewhere");
        }
    }

    private static void hasAccount(int count, long user) {
        if (count != 1) {
            throw new IllegalStateException("user " + user + " has no account");
        }
    }

    private static <T> List<Object[]> rows(List<T> items, Function<T, Object[]> row) {
        return items.stream().map(row).toList();
    }

    private static byte[] sha256(byte[] body) {
        try {
            return MessageDigest.getInstance("SHA-256").digest(body);
        } catch (NoSuchAlgorithmException e) {
            throw new IllegalStateException(e);
        }
    }
}

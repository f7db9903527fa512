// Takes order.paid messages from a queue and applies each business key once: one message, one transaction, one ack.
package main

import (
	"context"
	"crypto/sha256"
	"database/sql"
	"database/sql/driver"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"
	amqp "github.com/rabbitmq/amqp091-go"
)

const handler = "points"

type orderPaid struct {
	OrderID   uint64 `json:"orderId"`
	UserID    uint64 `json:"userId"`
	Amount    int64  `json:"amount"`
	ReceiptNo string `json:"receiptNo"`
}

type pointsAwarded struct {
	OrderID uint64 `json:"orderId"`
	UserID  uint64 `json:"userId"`
	Points  int64  `json:"points"`
}

func main() {
	log.SetFlags(log.Ltime)
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	workers, err := strconv.Atoi(os.Getenv("BENCH_CONCURRENCY"))
	if err != nil || workers < 1 {
		return fmt.Errorf("BENCH_CONCURRENCY: want a number of at least 1, have %q", os.Getenv("BENCH_CONCURRENCY"))
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()

	db, err := openDB(os.Getenv("BENCH_MYSQL_URL"), workers)
	if err != nil {
		return err
	}
	defer db.Close()
	p, err := newPoints(db)
	if err != nil {
		return err
	}

	conn, err := amqp.Dial(os.Getenv("BENCH_AMQP_URL"))
	if err != nil {
		return fmt.Errorf("broker: %w", err)
	}
	defer conn.Close() // what is not acked by then goes back to the queue
	ch, err := conn.Channel()
	if err != nil {
		return fmt.Errorf("channel: %w", err)
	}
	// Enough that no worker waits for the broker: an ack opens the window again only after the queue has logged it.
	if err := ch.Qos(max(4*workers, 32), 0, false); err != nil {
		return fmt.Errorf("qos: %w", err)
	}
	deliveries, err := ch.Consume(os.Getenv("BENCH_QUEUE"), "", false, false, false, false, nil)
	if err != nil {
		return fmt.Errorf("consume: %w", err)
	}
	fmt.Println("ready")

	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() { p.work(ctx, deliveries) })
	}
	wg.Wait()
	if ctx.Err() == nil {
		return errors.New("the broker connection is lost")
	}
	return nil
}

func openDB(rawURL string, conns int) (*sql.DB, error) {
	u, err := url.Parse(rawURL)
	if err != nil {
		return nil, fmt.Errorf("BENCH_MYSQL_URL: %w", err)
	}
	cfg := mysql.NewConfig()
	cfg.User = u.User.Username()
	cfg.Passwd, _ = u.User.Password()
	cfg.Net, cfg.Addr = "tcp", u.Host
	cfg.DBName = strings.TrimPrefix(u.Path, "/")
	// Set once for the session; a level given to BeginTx would be a round trip of each transaction.
	cfg.Params = map[string]string{"transaction_isolation": "'READ-COMMITTED'"}
	cfg.ClientFoundRows = true // a zero amount changes no row and still is no missing account
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	db := sql.OpenDB(connector)
	db.SetMaxOpenConns(conns)
	db.SetMaxIdleConns(conns) // the default of 2 would close and open connections all the time
	return db, nil
}

// points is the handler with its statements. database/sql prepares them once for each connection of the pool, so that a
// transaction is six round trips (START TRANSACTION, four executions, COMMIT) and the server parses nothing again.
type points struct {
	db                                     *sql.DB
	inbox, stored, ledger, account, outbox *sql.Stmt
}

func newPoints(db *sql.DB) (*points, error) {
	p := &points{db: db}
	for _, s := range []struct {
		stmt **sql.Stmt
		text string
	}{
		{&p.inbox, `INSERT INTO inbox (handler, business_key, fingerprint, event_id, state, decided_at)
			VALUES (?, ?, ?, ?, 0, UTC_TIMESTAMP(6))`},
		{&p.stored, `SELECT fingerprint FROM inbox WHERE handler = ? AND business_key = ?`},
		{&p.ledger, `INSERT INTO points_ledger (receipt_no, order_id, user_id, points) VALUES (?, ?, ?, ?)`},
		{&p.account, `UPDATE points_account SET points = points + ? WHERE user_id = ?`},
		{&p.outbox, `INSERT INTO outbox (event_id, event_type, business_key, payload, created_at)
			VALUES (?, 'points.awarded', ?, ?, UTC_TIMESTAMP(6))`},
	} {
		var err error
		if *s.stmt, err = db.Prepare(s.text); err != nil {
			return nil, fmt.Errorf("prepare: %w", err)
		}
	}
	return p, nil
}

// work handles one message at a time until ctx ends (the one in hand is finished) or the broker is gone.
func (p *points) work(ctx context.Context, deliveries <-chan amqp.Delivery) {
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
		case d, ok := <-deliveries:
			if !ok {
				return
			}
			if !p.handle(ctx, &d) {
				continue
			}
			if err := d.Ack(false); err != nil {
				log.Printf("ack of %s: %v", d.MessageId, err) // the channel is closed: the loop ends at the next receive
			}
		}
	}
}

// handle tells whether the message is to be acked. One that fails for good goes back; the delivery limit of the queue
// ends that.
func (p *points) handle(ctx context.Context, d *amqp.Delivery) bool {
	for {
		err := p.apply(d)
		if err == nil {
			return true
		}
		lost := connectionLost(err)
		switch {
		case deadlock(err): // again at once: the rollback has freed what the other transaction waited for
		case lost && ctx.Err() == nil:
			log.Printf("%s: %v; again", d.MessageId, err)
			time.Sleep(100 * time.Millisecond)
		case lost: // ending: closing the broker connection gives the message back
			return false
		default:
			log.Printf("%s: %v", d.MessageId, err)
			if err := d.Nack(false, true); err != nil {
				log.Printf("nack of %s: %v", d.MessageId, err)
			}
			return false
		}
	}
}

// apply does the transaction; nil means that the key is applied, now or before.
func (p *points) apply(d *amqp.Delivery) error {
	if t, _ := d.Headers["event-type"].(string); t != "order.paid" {
		return fmt.Errorf("no handler for event type %q", t)
	}
	var order orderPaid
	if err := json.Unmarshal(d.Body, &order); err != nil {
		return fmt.Errorf("body: %w", err)
	}
	key := "order:" + strconv.FormatUint(order.OrderID, 10) + ":paid"
	fingerprint := sha256.Sum256(d.Body)
	payload, err := json.Marshal(pointsAwarded{order.OrderID, order.UserID, order.Amount})
	if err != nil {
		return err
	}

	tx, err := p.db.Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback() // does nothing after the commit

	if _, err := tx.Stmt(p.inbox).Exec(handler, key, fingerprint[:], d.MessageId); err != nil {
		if number(err) != 1062 {
			return fmt.Errorf("inbox: %w", err)
		}
		var stored []byte
		if err := tx.Stmt(p.stored).QueryRow(handler, key).Scan(&stored); err != nil {
			return fmt.Errorf("inbox: %w", err)
		}
		if string(stored) != string(fingerprint[:]) {
			return fmt.Errorf("conflict: %s was applied with another body", key)
		}
		return nil
	}
	if _, err := tx.Stmt(p.ledger).Exec(order.ReceiptNo, order.OrderID, order.UserID, order.Amount); err != nil {
		return fmt.Errorf("ledger: %w", err)
	}
	res, err := tx.Stmt(p.account).Exec(order.Amount, order.UserID)
	if err != nil {
		return fmt.Errorf("account: %w", err)
	}
	if n, _ := res.RowsAffected(); n != 1 { // this driver has no error here: the count came with the answer
		return fmt.Errorf("user %d has no account", order.UserID)
	}
	if _, err := tx.Stmt(p.outbox).Exec(handler+":"+key, key, payload); err != nil {
		return fmt.Errorf("outbox: %w", err)
	}
	return tx.Commit()
}

func number(err error) uint16 {
	if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
		return e.Number
	}
	return 0
}

// deadlock is for a deadlock or a lock wait that took too long.
func deadlock(err error) bool {
	n := number(err)
	return n == 1213 || n == 1205
}

// connectionLost is for anything but the server's own word on a statement. A commit cut off that way may have happened:
// then the next try finds the key.
func connectionLost(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, mysql.ErrInvalidConn) {
		return true
	}
	_, network := errors.AsType[interface {
		error
		Timeout() bool
	}](err)
	return network
}

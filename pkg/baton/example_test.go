package baton_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"time"

	"baton/pkg/baton"
)

// This program runs in several processes, and one of them leads. It ends in an orderly way at Ctrl-C, and another process follows
// immediately.
func Example() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lock := baton.Lock{Key: "reports", Redis: baton.Redis{URL: os.Getenv("REDIS_URL")}}
	err := baton.Lead(ctx, lock, func(_ context.Context, term baton.Term) error {
		fmt.Println("leading", term.Epoch() > 0)
		return baton.ErrDone // a real program works until ctx ends
	})
	fmt.Println("over:", err)
	// Output:
	// leading true
	// over: <nil>
}

// This function works in rounds. Each round begins only while this process leads, and uses the context of the term.
func ExampleLead() {
	lock := baton.Lock{Key: "rounds", Redis: baton.Redis{URL: os.Getenv("REDIS_URL")}, TTL: 5 * time.Second}
	rounds := 0
	err := baton.Lead(context.Background(), lock, func(ctx context.Context, _ baton.Term) error {
		every := time.NewTicker(10 * time.Millisecond)
		defer every.Stop()
		for {
			select {
			case <-ctx.Done():
				return nil // the process campaigns again
			case <-every.C:
			}
			if rounds++; rounds == 3 {
				return errors.New("three rounds are enough")
			}
		}
	})
	fmt.Println(err)
	// Output: three rounds are enough
}

// The epoch rejects the write of a process that was stopped in the middle of its term.
func ExampleTerm_Epoch() {
	var db *sql.DB // a database whose table has a column for the epoch
	save := func(ctx context.Context, term baton.Term, body string) error {
		const save = `UPDATE report SET body = $1, epoch = $2 WHERE id = 1 AND epoch <= $2`
		result, err := db.ExecContext(ctx, save, body, term.Epoch())
		if err != nil {
			return err
		}
		if n, err := result.RowsAffected(); err != nil || n == 0 {
			return errors.Join(errors.New("another process has led since"), err)
		}
		return nil
	}
	lock := baton.Lock{Key: "reports", Redis: baton.Redis{URL: "redis://127.0.0.1:6379/0"}}
	err := baton.Lead(context.Background(), lock, func(ctx context.Context, term baton.Term) error {
		return save(ctx, term, "…")
	})
	fmt.Println(err)
}

// Confirm asks Redis before an action that cannot be undone.
func ExampleTerm_Confirm() {
	lock := baton.Lock{Key: "payments", Redis: baton.Redis{URL: os.Getenv("REDIS_URL")}}
	err := baton.Lead(context.Background(), lock, func(ctx context.Context, term baton.Term) error {
		if err := term.Confirm(ctx); err != nil {
			return err // the lock is lost, or that is unknown
		}
		fmt.Println("pay")
		return baton.ErrDone
	})
	fmt.Println(err)
	// Output:
	// pay
	// <nil>
}

// OnChange reports which node leads, for a health check or a log.
func ExampleLock_onChange() {
	ctx, cancel := context.WithCancel(context.Background())
	lock := baton.Lock{
		Key: "watched", Redis: baton.Redis{URL: os.Getenv("REDIS_URL")}, Node: "db1", Priority: 10,
		Logger: slog.New(slog.DiscardHandler), // or slog.Default()
		OnChange: func(e baton.Event) {
			fmt.Println(e.Kind)
			if e.Kind == baton.EventLeading {
				cancel()
			}
		},
	}
	err := baton.Lead(ctx, lock, func(ctx context.Context, _ baton.Term) error {
		<-ctx.Done()
		return nil
	})
	fmt.Println(err)
	// Output:
	// leading
	// stopping
	// ended
	// <nil>
}

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"baton/bench/internal/rig"
)

// tunedContender returns this program as a child process: a consumer only for this stream and this table, by a programmer who knows both
// and wants speed. It has no lease, no fence and no dead letters.
func tunedContender() contender {
	return contender{name: nameTuned, title: "Go, tuned by hand", speedOnly: true,
		start: func(l *lab, f flow, t target, _ setting) (*rig.Process, error) {
			return rig.Launch([]string{l.programs.self, "-child", f.source, "-tuned", "-redis", l.redis.Addr(), "-dsn", l.dsn, "-table", t.table})
		}}
}

// tunedBatch is the number of entries in a transaction, as in baton.
const tunedBatch = 5000

// tunedUser is a row of the table.
type tunedUser struct {
	id, visits       int64
	name, email, bio string
	seen             time.Time
}

// tunedPage is a batch, and the place in the stream where the batch ends.
type tunedPage struct {
	users []tunedUser
	end   string
}

// tunedChild runs until it is killed. It reads the next page while it writes a page.
func tunedChild(ctx context.Context, o options) error {
	conn, err := redis.Dial("tcp", o.redis)
	if err != nil {
		return err
	}
	defer conn.Close()
	db, err := pgx.Connect(ctx, o.dsn)
	if err != nil {
		return err
	}
	defer db.Close(context.WithoutCancel(ctx))
	for _, statement := range []string{
		"CREATE TABLE place (end_of text NOT NULL)", "INSERT INTO place VALUES ('0')",
		"CREATE TEMPORARY TABLE page (LIKE " + o.into + ") ON COMMIT DELETE ROWS",
	} {
		if _, err := db.Exec(ctx, statement); err != nil {
			return fmt.Errorf("%s: %w", statement, err)
		}
	}
	pages := make(chan tunedPage, 1)
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return tunedRead(ctx, conn, pages) })
	group.Go(func() error { return tunedWrite(ctx, db, o.into, pages) })
	return group.Wait()
}

func tunedRead(ctx context.Context, conn redis.Conn, pages chan<- tunedPage) error {
	for place := "0"; ; {
		reply, err := redis.Values(conn.Do("XREAD", "COUNT", tunedBatch, "BLOCK", 1000, "STREAMS", streamKey, place))
		if errors.Is(err, redis.ErrNil) {
			continue
		}
		if err != nil {
			return err
		}
		entries := reply[0].([]any)[1].([]any)
		p := tunedPage{users: make([]tunedUser, len(entries))}
		for i, e := range entries {
			entry := e.([]any)
			if err := p.users[i].read(entry[1].([]any)); err != nil {
				return err
			}
			place = string(entry[0].([]byte))
		}
		p.end = place
		slices.SortStableFunc(p.users, func(a, b tunedUser) int { return cmp.Compare(a.id, b.id) })
		select {
		case pages <- p:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// read reads the fields, in the order in which the producer writes them.
func (u *tunedUser) read(fields []any) (err error) {
	value := func(i int) string { return string(fields[2*i+1].([]byte)) }
	if len(fields) != 2*len(columns()) || !bytes.Equal(fields[0].([]byte), []byte("id")) {
		return fmt.Errorf("an entry of other fields: %q", fields)
	}
	var errs [3]error
	u.id, errs[0] = strconv.ParseInt(value(0), 10, 64)
	u.name, u.email, u.bio = value(1), value(2), value(3)
	u.visits, errs[1] = strconv.ParseInt(value(4), 10, 64)
	u.seen, errs[2] = time.Parse(time.RFC3339, value(5))
	return errors.Join(errs[:]...)
}

func tunedWrite(ctx context.Context, db *pgx.Conn, table string, pages <-chan tunedPage) error {
	upsert := fmt.Sprintf("INSERT INTO %s SELECT * FROM page %s", table, onConflict(target{upsert: true}))
	for {
		var p tunedPage
		select {
		case p = <-pages:
		case <-ctx.Done():
			return ctx.Err()
		}
		err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error {
			next := 0
			_, err := tx.CopyFrom(ctx, pgx.Identifier{"page"}, columns(), pgx.CopyFromFunc(func() ([]any, error) {
				if next == len(p.users) {
					return nil, nil
				}
				u := &p.users[next]
				next++
				return []any{u.id, u.name, u.email, u.bio, u.visits, u.seen}, nil
			}))
			if err != nil {
				return err
			}
			both := &pgx.Batch{}
			both.Queue(upsert)
			both.Queue("UPDATE place SET end_of = $1", p.end)
			return tx.SendBatch(ctx, both).Close()
		})
		if err != nil {
			return fmt.Errorf("write into %s: %w", table, err)
		}
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
	"github.com/jackc/pgx/v5"

	"baton/bench/internal/rig"
)

// latencyPart is the name of the part that measures the time from a write in Redis to the row in the database.
const latencyPart = "latency"

// trickle is the number of changes per second.
const trickle = 100

// freshness is the requirement of a source at a trickle of changes.
type freshness struct {
	data     dataset
	schedule string
	p50, p99 time.Duration // 0: no requirement
	rate     int           // changes per second
}

func freshnesses() []freshness {
	const always, every, late = "@always", "@every 1s", time.Second + 50*time.Millisecond
	return []freshness{
		{streamed(), always, 5 * time.Millisecond, 20 * time.Millisecond, trickle},
		{listed(), always, 5 * time.Millisecond, 20 * time.Millisecond, trickle},
		{articles(), always, 20 * time.Millisecond, 50 * time.Millisecond, trickle},
		{users(), always, 20 * time.Millisecond, 50 * time.Millisecond, trickle},
		{users(), every, 0, late, trickle},
		{articles(), every, 0, late, trickle},
		{scannedUsers(), every, 0, late, trickle},
	}
}

// measureLatency measures a real node that flushes a trickle.
func measureLatency(ctx context.Context, o options, r *report) error {
	if !o.wants(latencyPart, true) {
		return nil
	}
	var all [][]time.Duration
	err := withBaton(ctx, o, func(b *bed, program, dir string) error {
		r.Printf("\n### From the write in Redis to the row in PostgreSQL, %d changes a second\n", trickle)
		r.Printf("| source | schedule | p50, ms | p99, ms | longest, ms | load of %d processors |", runtime.NumCPU())
		r.Printf("|---|---|--:|--:|--:|--:|")
		syscall.Sync() // a disk that is still busy with the last part delays every COMMIT
		for _, f := range freshnesses() {
			took, err := b.latency(ctx, o, f, program, dir)
			if err != nil {
				return fmt.Errorf("latency of %s: %w", f.data.name, err)
			}
			r.Printf("| %s | `%s` | %.1f | %.1f | %.1f | %.1f |", f.data.name, f.schedule,
				ms(quantile(took, 50)), ms(quantile(took, 99)), ms(quantile(took, 100)), rig.Load())
			all = append(all, took)
		}
		return nil
	})
	if err != nil {
		return err
	}
	r.Printf("")
	for i, f := range freshnesses() {
		p50, p99 := quantile(all[i], 50), quantile(all[i], 99)
		if f.p50 > 0 {
			r.Want(p50 <= f.p50, "%s, %s, p50: %.1f ms (required: %.0f ms)", f.data.name, f.schedule, ms(p50), ms(f.p50))
		}
		r.Want(p99 <= f.p99, "%s, %s, p99: %.1f ms (required: %.0f ms)", f.data.name, f.schedule, ms(p99), ms(f.p99))
	}
	return nil
}

// tellFunction creates the database function that reports that a row's transaction has committed.
const tellFunction = "CREATE OR REPLACE FUNCTION tell() RETURNS trigger LANGUAGE plpgsql AS " +
	"$$ BEGIN PERFORM pg_notify('seen', NEW.id::text); RETURN NULL; END $$"

// latency writes rows for a while, and returns the time that each row took.
func (b *bed) latency(ctx context.Context, o options, f freshness, program, dir string) (took []time.Duration, err error) {
	table := f.data.table
	b.loaded = ""
	if _, err := b.conn.Do("FLUSHALL"); err != nil {
		return nil, err
	}
	// A trigger reports a row when its transaction commits.
	err = b.database.exec(ctx, f.data.create(b.database.engine),
		tellFunction,
		"CREATE TRIGGER made AFTER INSERT ON "+table+" FOR EACH ROW EXECUTE FUNCTION tell()",
		"CREATE TRIGGER changed AFTER UPDATE ON "+table+" FOR EACH ROW WHEN (OLD.* IS DISTINCT FROM NEW.*) EXECUTE FUNCTION tell()")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.database.exec(ctx, "DROP TABLE "+table)) }()
	n, err := startNode(program, dir, b.config("latency-"+f.data.name)+flushJob(f.data, f.schedule))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	seen, err := listen(ctx, b.database.dsn)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, seen.close()) }()
	// Rows before the node leads and has flushed once do not count.
	if err := drip(ctx, b.conn, f, []int64{1}, nil); err != nil {
		return nil, err
	}
	if err := n.await(ctx, time.Minute, 50*time.Millisecond, func() (bool, error) { return seen.count() > 0, nil }); err != nil {
		return nil, fmt.Errorf("the first row: %w; the log:\n%s", err, n.Log())
	}
	changes := int(o.trickling.Seconds()) * f.rate
	ids := rig.InKeyOrder(changes, changes)
	for i := range ids {
		ids[i]++
	}
	wrote := map[int64]time.Time{}
	if err := drip(ctx, b.conn, f, ids, wrote); err != nil {
		return nil, err
	}
	if err := n.await(ctx, time.Minute, 50*time.Millisecond, func() (bool, error) { return seen.count() == len(ids)+1, nil }); err != nil {
		return nil, fmt.Errorf("%d of %d rows have come: %w; the log:\n%s", seen.count()-1, len(ids), err, n.Log())
	}
	for id, at := range wrote {
		took = append(took, seen.at(id).Sub(at))
	}
	return took, nil
}

// drip changes one row after the other, and records the beginning of each change.
func drip(ctx context.Context, c redis.Conn, f freshness, ids []int64, wrote map[int64]time.Time) error {
	tick := time.NewTicker(time.Second / time.Duration(f.rate))
	defer tick.Stop()
	for i, id := range ids {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
		if wrote != nil {
			wrote[id] = time.Now()
		}
		if f.data.load != nil {
			if err := f.data.load(c, ids[i:i+1]); err != nil {
				return err
			}
		}
		if err := f.data.change(c, ids[i:i+1]); err != nil {
			return err
		}
	}
	return nil
}

// sightings contains the time of the first report of each row.
type sightings struct {
	conn *pgx.Conn
	stop context.CancelFunc
	done chan struct{}

	mu    sync.Mutex
	first map[int64]time.Time
	err   error
}

func listen(ctx context.Context, dsn string) (*sightings, error) {
	conn, err := pgx.Connect(ctx, dsn)
	if err != nil {
		return nil, err
	}
	if _, err := conn.Exec(ctx, "LISTEN seen"); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	s := &sightings{conn: conn, done: make(chan struct{}), first: map[int64]time.Time{}}
	ctx, s.stop = context.WithCancel(ctx)
	go s.hear(ctx)
	return s, nil
}

func (s *sightings) hear(ctx context.Context) {
	defer close(s.done)
	for {
		n, err := s.conn.WaitForNotification(ctx)
		now := time.Now()
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		var id int64
		if err == nil {
			id, err = strconv.ParseInt(n.Payload, 10, 64)
		}
		if _, known := s.first[id]; !known && err == nil {
			s.first[id] = now
		}
		s.err = err
		s.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (s *sightings) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.first)
}

func (s *sightings) at(id int64) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.first[id]
}

func (s *sightings) close() error {
	s.stop()
	<-s.done
	return errors.Join(s.err, s.conn.Close(context.Background()))
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }

// quantile returns the smallest value that at least the given percentage of all values do not exceed.
func quantile(of []time.Duration, percent int) time.Duration {
	if len(of) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(of))
	return sorted[max(0, int(math.Ceil(float64(len(sorted)*percent)/100))-1)]
}

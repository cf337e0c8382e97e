package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// measureSpeed runs every program of every wanted path.
func measureSpeed(ctx context.Context, o options, r *report) error {
	wanted := map[string][]path{}
	var engines []engine
	for _, p := range paths() {
		if !o.wants(p.name, !p.optional) {
			continue
		}
		if wanted[p.engine.driver] == nil {
			engines = append(engines, p.engine)
		}
		wanted[p.engine.driver] = append(wanted[p.engine.driver], p)
	}
	for _, e := range engines {
		if err := measureEngine(ctx, o, r, e, wanted[e.driver]); err != nil {
			return err
		}
	}
	return nil
}

// measureEngine uses its own Redis and its own database, because data of one kind of database in the system's caches would slow the next
// kind.
func measureEngine(ctx context.Context, o options, r *report, e engine, paths []path) (err error) {
	b, err := newBed(ctx, e, o.dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, b.close()) }()
	for _, p := range paths {
		if err := b.database.exec(ctx, p.programs[0].data.create(e)); err != nil {
			return err
		}
		results, err := b.rounds(ctx, o, p, r)
		if err != nil {
			return err
		}
		r.speed(p, results)
		if err := b.database.exec(ctx, "DROP TABLE "+p.programs[0].data.table); err != nil {
			return err
		}
	}
	return nil
}

// bed is a Redis and a database for measurements.
type bed struct {
	redis    string // host:port
	redisPid int
	conn     redis.Conn
	database *database
	loaded   string         // the dataset in Redis
	closers  []func() error // in the order of opening
}

func newBed(ctx context.Context, e engine, dir string) (b *bed, err error) {
	b = &bed{}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.close())
		}
	}()
	server, err := startRedis(dir)
	if err != nil {
		return b, err
	}
	b.closers = append(b.closers, server.Stop)
	b.redis, b.redisPid = server.Addr(), server.Pid()
	if b.conn, err = dialRedis(b.redis); err != nil {
		return b, err
	}
	b.closers = append(b.closers, b.conn.Close)
	if b.database, err = startDatabase(ctx, e, dir); err != nil {
		return b, err
	}
	b.closers = append(b.closers, b.database.close)
	return b, nil
}

func (b *bed) close() error {
	var problems []error
	for i := len(b.closers) - 1; i >= 0; i-- {
		problems = append(problems, b.closers[i]())
	}
	return errors.Join(problems...)
}

// load makes sure that Redis has a dataset without pending changes.
func (b *bed) load(data dataset, ids []int64) error {
	if b.loaded == data.name && len(data.pending) > 0 {
		_, err := b.conn.Do("DEL", redis.Args{}.AddFlat(data.pending)...)
		return err
	}
	if _, err := b.conn.Do("FLUSHALL"); err != nil {
		return err
	}
	if data.load != nil {
		if err := data.load(b.conn, ids); err != nil {
			return fmt.Errorf("put %s into Redis: %w", data.name, err)
		}
	}
	b.loaded = data.name
	return nil
}

// rounds lets the programs take turns. Each round begins with another program, so that no program always follows the same program.
func (b *bed) rounds(ctx context.Context, o options, p path, r *report) (map[string][]result, error) {
	results := map[string][]result{}
	for round := range o.rounds {
		for i := range p.programs {
			program := p.programs[(i+round)%len(p.programs)]
			if !strings.Contains(program.name, o.program) {
				continue
			}
			t := task{Path: p.name, Program: program.name, Redis: b.redis, DSN: b.database.dsn,
				Rows: program.rows(o.rows), Table: o.table}
			if o.profile != "" && program.role == roleBaton {
				if err := os.MkdirAll(o.profile, 0o755); err != nil {
					return nil, err
				}
				t.Profile = filepath.Join(o.profile, p.name+".prof")
			}
			got, err := b.turn(ctx, program, t, o.rows)
			if err != nil {
				return nil, err
			}
			r.Progress("%-20s round %d: %-28s %8.0f rows/s", p.name, round+1, program.name, got.perSecond())
			results[program.name] = append(results[program.name], got)
		}
	}
	return results, nil
}

// turn does the run of one program, with rows that are already in the table. Redis has n of these rows.
func (b *bed) turn(ctx context.Context, p program, t task, n int) (result, error) {
	if p.redis {
		if err := b.load(p.data, rig.AsTheyArrive(n, t.Table)); err != nil {
			return result{}, err
		}
	}
	if err := b.database.seed(ctx, p.data, t.Table); err != nil {
		return result{}, err
	}
	cpu, err := b.database.cpuSeconds()
	if err != nil {
		return result{}, err
	}
	got, err := spawn(ctx, t)
	if err != nil {
		return got, err
	}
	// For a moment the process of the ended connection is not counted anywhere.
	if err := sleep(ctx, 200*time.Millisecond); err != nil {
		return got, err
	}
	after, err := b.database.cpuSeconds()
	if err != nil {
		return got, err
	}
	got.DatabaseCPU = after - cpu
	if err := b.database.check(ctx, p.data, t.Rows); err != nil {
		return got, fmt.Errorf("after %s: %w", t.Program, err)
	}
	return got, nil
}

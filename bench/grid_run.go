package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
)

// These are the requirements of every cell, relative to the best direct writer.
const (
	leastOfDirect = 0.85
	mostCPU       = 1.15 // of the database
)

// gridTarget names the part of the document that the grid is written into.
const gridTarget = "make bench, grid"

// measureGrid measures the cells that are selected.
func measureGrid(ctx context.Context, o options, out io.Writer) (verdict, err error) {
	cells := selected(o)
	if !o.wants(gridPart, true) || len(cells) == 0 {
		return nil, nil
	}
	r := newReport(out, o)
	r.Printf("\nCPU in seconds for 100,000 rows.\n")
	r.Printf("| source | database | rows there | order | autovacuum | direct | rows/s | database's CPU | baton: rows/s | own CPU | " +
		"database's CPU | rows/s ÷ | database's CPU × | " + tunedName + ": rows/s | rows/s ÷ | |")
	r.Printf("|---|---|--:|---|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|")
	g := &gridRun{options: o, report: r}
	defer func() { err = errors.Join(err, g.close(), os.RemoveAll(g.dir)) }()
	if err := g.build(ctx); err != nil {
		return nil, err
	}
	for _, c := range cells {
		if err := g.measure(ctx, c); err != nil {
			return nil, fmt.Errorf("%v: %w", c, err)
		}
	}
	r.Printf("")
	r.Want(len(g.missed) == 0, "%d of %d cells reach %.2f of the best direct writer with at most %.2f × the database's CPU%s",
		len(cells)-len(g.missed), len(cells), leastOfDirect, mostCPU, butNot(g.missed))
	if o.write == "" {
		return r.Verdict(), nil
	}
	return r.Verdict(), r.WriteWithChart(o.write, gridTarget, gridChart, drawGrid(g.outcomes))
}

// butNot returns the end of a sentence about all cells, which names the exceptions.
func butNot(some []string) string {
	if len(some) == 0 {
		return ""
	}
	return "; not: " + strings.Join(some, ", ")
}

// gridRun is the state that passes from one cell to the next.
type gridRun struct {
	options
	*report
	bed     *bed
	program string // baton
	dir     string // its directory
	driver  string // of the bed
	table   string // the present one, and
	size    int
	turns   int
	missed  []string
	// outcomes contains the outcomes of the cells, in the order of their measurement.
	outcomes []outcome
}

func (g *gridRun) close() error {
	if g.bed == nil {
		return nil
	}
	return g.bed.close()
}

// build builds baton.
func (g *gridRun) build(ctx context.Context) (err error) {
	if g.dir, err = os.MkdirTemp(g.options.dir, "baton-bench-"); err != nil {
		return err
	}
	if g.program = g.options.baton; g.program == "" {
		g.program, err = rig.BuildBaton(ctx, g.dir)
	}
	return err
}

// shares returns the number of rows that warm baton up, and the number of rows that are measured. Both together are not more than the
// table has.
func (c cell) shares(most int) (warm, rows int) {
	warm, rows = gridBatch, most
	if c.table > 0 && c.table < warm+rows {
		warm = c.table / 10
		rows = c.table - warm
	}
	return warm, rows
}

// measure lets the contenders of a cell take turns. With a small table they get more turns.
func (g *gridRun) measure(ctx context.Context, c cell) error {
	if err := g.setUp(ctx, c); err != nil {
		return err
	}
	_, rows := c.shares(g.rows)
	programs := append(gridContenders(c), program{name: batonPlain, role: roleBaton})
	results := map[string][]result{}
	for round := range max(g.rounds, min(8, g.rows/rows)) {
		for i := range programs {
			p := programs[(i+round)%len(programs)]
			got, err := g.turn(ctx, c, p)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			g.Progress("%-40v round %d: %-24s %8.0f rows/s, database's CPU %.2f s", c, round+1, p.name, got.perSecond(), got.DatabaseCPU)
			results[p.name] = append(results[p.name], got)
		}
	}
	g.line(c, programs, results)
	return nil
}

// setUp gives the table the size of the cell.
func (g *gridRun) setUp(ctx context.Context, c cell) (err error) {
	e, data := c.engine(), c.data()
	if g.driver != c.driver {
		if err := g.close(); err != nil {
			return err
		}
		if g.bed, err = newBed(ctx, e, g.options.dir); err != nil {
			return err
		}
		g.bed.database.db.SetMaxOpenConns(1) // see cpuOfOthers
		g.driver, g.table = c.driver, ""
	}
	g.bed.loaded = ""
	db := g.bed.database
	if g.table != data.table || g.size != c.table {
		if g.table != "" {
			err = db.exec(ctx, "DROP TABLE "+g.table)
		}
		err = errors.Join(err, db.exec(ctx, data.create(e)))
		if c.table > 0 {
			err = errors.Join(err, db.exec(ctx, data.seed(e, c.table)), db.exec(ctx, e.settle(data.table)...))
		}
		g.table, g.size = data.table, c.table
	}
	if c.vacuum != "" {
		err = errors.Join(err, db.exec(ctx, fmt.Sprintf("ALTER TABLE %s SET (autovacuum_enabled = %s)", g.table, c.vacuum)))
	}
	return err
}

// clear restores the table to its state before the contenders wrote.
func (g *gridRun) clear(ctx context.Context, c cell) error {
	db := g.bed.database
	if c.table == 0 {
		return db.exec(ctx, db.engine.empty(g.table))
	}
	column := map[string]string{"users": "visits", "articles": "views"}[g.table]
	if err := db.exec(ctx, fmt.Sprintf("UPDATE %s SET %s = 0 WHERE %s <> 0", g.table, column, column)); err != nil {
		return err
	}
	if c.vacuum != "" {
		return db.exec(ctx, "VACUUM "+g.table)
	}
	return nil
}

// turn does one contender's run.
func (g *gridRun) turn(ctx context.Context, c cell, p program) (got result, err error) {
	if err := g.clear(ctx, c); err != nil {
		return got, err
	}
	warm, rows := c.shares(g.rows)
	if p.role == roleBaton {
		got, err = g.baton(ctx, c, warm, rows)
		return got, errors.Join(err, g.bed.database.check(ctx, c.data(), warm+rows))
	}
	if p.role == roleTuned {
		if err := g.bed.pend(c, warm, rows); err != nil {
			return got, err
		}
		if c.source == "scan" { // a scan also reads all other keys
			rows += warm
		}
	}
	cpu, err := g.bed.database.cpuSeconds()
	if err != nil {
		return got, err
	}
	t := task{Path: gridPart + "/" + c.String(), Program: p.name, DSN: g.bed.database.dsn, Redis: g.bed.redis, Rows: g.rows}
	if got, err = spawn(ctx, t); err != nil {
		return got, err
	}
	got.DatabaseCPU, err = g.databaseCPU(ctx, cpu)
	return got, errors.Join(err, g.bed.database.check(ctx, c.data(), rows))
}

// pend puts the changes of a cell into Redis. For a scan the changes are all present keys.
func (b *bed) pend(c cell, warm, rows int) error {
	data, ids := c.data(), c.ids(warm+rows)
	if err := b.load(data, ids); err != nil {
		return err
	}
	if c.source == "scan" {
		warm = 0
	}
	return data.change(b.conn, ids[warm:])
}

// settling is the time during which the process of an ended connection is counted neither as a process nor as an ended child.
const settling = 200 * time.Millisecond

// databaseCPU returns the server's CPU time since the reading before.
func (g *gridRun) databaseCPU(ctx context.Context, before float64) (float64, error) {
	if err := sleep(ctx, settling); err != nil {
		return 0, err
	}
	after, err := g.bed.database.cpuSeconds()
	return after - before, err
}

// baton does the turn of a real node. The node first flushes some rows, and is stopped while the other rows are put into Redis.
func (g *gridRun) baton(ctx context.Context, c cell, warm, rows int) (got result, err error) {
	b, data, ids := g.bed, c.data(), c.ids(warm+rows)
	if err := b.load(data, ids); err != nil {
		return got, err
	}
	g.turns++
	n, err := startNode(g.program, g.dir, g.config(c, g.turns))
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, n.Stop()) }()
	if err := data.change(b.conn, ids[:warm]); err != nil {
		return got, err
	}
	if _, err := g.arrived(ctx, n, data, ids[:warm]); err != nil {
		return got, fmt.Errorf("warm up: %w; the log:\n%s", err, n.Log())
	}
	if err := errors.Join(sleep(ctx, 500*time.Millisecond), n.Signal(syscall.SIGSTOP), data.change(b.conn, ids[warm:])); err != nil {
		return got, err
	}
	cpu, err := rig.CPU(n.Pid())
	if err != nil {
		return got, err
	}
	databaseCPU, err := b.database.cpuOfOthers(ctx)
	if err != nil {
		return got, err
	}
	scans, err := scansOf(b.conn)
	if err != nil {
		return got, err
	}
	began := time.Now()
	if err := n.Signal(syscall.SIGCONT); err != nil {
		return got, err
	}
	if c.source == "scan" { // the clock starts with its first SCAN
		err := n.await(ctx, time.Minute, time.Millisecond, func() (bool, error) {
			now, err := scansOf(b.conn)
			began = time.Now()
			return now > scans, err
		})
		if err != nil {
			return got, err
		}
	}
	at, err := g.arrived(ctx, n, data, ids[warm:])
	if err != nil {
		return got, fmt.Errorf("%w; the log:\n%s", err, n.Log())
	}
	if err := n.Signal(syscall.SIGSTOP); err != nil { // the next pass of a scan does not count
		return got, err
	}
	used, err := rig.CPU(n.Pid())
	written := rows
	if c.source == "scan" { // the pass of a scan also writes the rows of the warm-up
		written += warm
	}
	got = result{Rows: int64(written), Seconds: at.Sub(began).Seconds(), CPU: (used - cpu).Seconds()}
	if err != nil {
		return got, err
	}
	if err := sleep(ctx, settling); err != nil {
		return got, err
	}
	after, err := b.database.cpuOfOthers(ctx)
	got.DatabaseCPU = after - databaseCPU
	// Now the rows outside the sample are also written.
	return got, errors.Join(err, n.Signal(syscall.SIGCONT), sleep(ctx, 200*time.Millisecond))
}

// config returns the configuration of the node of one turn. The lease is longer than the time for which the node is stopped.
func (g *gridRun) config(c cell, turn int) string {
	b, schedule := g.bed, "@always"
	if c.source == "scan" { // otherwise the run would have no end
		schedule = "@every 1s"
	}
	return fmt.Sprintf(`node: {id: bench}
redis: {url: "redis://%s/0"}
election: {lock_key: grid-%d, ttl: 120s}
http: {listen: "127.0.0.1:0"}
databases:
  main: {driver: %s, dsn: "%s"}
defaults: {catch_up: none}
jobs:
  - name: grid-%d
    schedule: "%s"
    flush:%s`, b.redis, turn, c.driver, b.database.dsn, turn, schedule, c.data().job)
}

// scansOf returns the number of SCAN commands that Redis has served.
func scansOf(c redis.Conn) (int64, error) {
	info, err := redis.String(c.Do("INFO", "commandstats"))
	if err != nil {
		return 0, err
	}
	_, after, _ := strings.Cut(info, "cmdstat_scan:calls=")
	calls, _, _ := strings.Cut(after, ",")
	n, _ := strconv.ParseInt(calls, 10, 64) // none yet: 0
	return n, nil
}

// arrived waits until all rows are written, and returns the time when they were written. It looks for a few rows of a sample until these
// rows are there, and only then for more rows. The longer the wait lasts, the longer are the pauses, because the database's CPU time
// counts.
func (g *gridRun) arrived(ctx context.Context, n *node, data dataset, ids []int64) (at time.Time, err error) {
	var left []int64
	for i := 0; i < len(ids); i += max(1, len(ids)/300) {
		left = append(left, ids[i])
	}
	limit := time.Minute + time.Duration(len(ids))*time.Millisecond
	every := 10 * time.Millisecond
	if len(ids) < 50_000 { // so few rows are written within a few such intervals
		every = 4 * time.Millisecond
	}
	began, asked := time.Now(), time.Time{}
	err = n.await(ctx, limit, every, func() (bool, error) {
		if time.Since(asked) < time.Since(began)/50 {
			return false, nil
		}
		asked = time.Now()
		for most := 5; len(left) > 0; most = len(left) {
			some := left[:min(most, len(left))]
			there, err := g.there(ctx, data, some)
			if err != nil {
				return false, err
			}
			var missing []int64
			for _, id := range some {
				if !there[id] {
					missing = append(missing, id)
				}
			}
			left = append(missing, left[len(some):]...)
			if len(missing) > 0 {
				return false, nil
			}
		}
		at = time.Now()
		return true, nil
	})
	return at, err
}

// there returns the rows among ids that are written.
func (g *gridRun) there(ctx context.Context, data dataset, ids []int64) (map[int64]bool, error) {
	list := strings.Trim(strings.ReplaceAll(fmt.Sprint(ids), " ", ","), "[]")
	rows, err := g.bed.database.db.QueryContext(ctx, "SELECT id FROM "+data.table+" WHERE id IN ("+list+") AND "+data.written)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	out := map[int64]bool{}
	for rows.Next() {
		var id int64
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		out[id] = true
	}
	return out, rows.Err()
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/bench/internal/rig"
	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
)

// refusedPart is the name of the part that measures how much refused rows slow a flush.
const refusedPart = "refused"

// refusedTarget names the section of the document for the results.
const refusedTarget = "make bench, refused"

// leastOfClean is the requirement if one row in a hundred is refused: the speed relative to a flush without refused rows.
const leastOfClean = 0.5

const (
	guestsKey = "list:guests"
	staysKey  = "stays"
)

// refusalKind is a way of writing and a reason for refusals.
type refusalKind struct {
	way, reason string
	mapping     mapping.Spec
	source      source.Options
	good, bad   func(id int) []any // arguments of the command that puts the row into Redis
	command     string
}

func refusalKinds() []refusalKind {
	guest := func(age, country, name, mail string) func(id int) []any {
		return func(id int) []any {
			return []any{guestsKey, fmt.Sprintf(`{"id": %d, "name": %s, "age": %s, "country": %s, "mail": %s}`, id, name, age, country,
				strings.ReplaceAll(mail, "ID", fmt.Sprint(id)))}
		}
	}
	const name, mail = `"somebody with a name"`, `"somebody.ID@example.com"`
	good := guest("30", "1", name, mail)
	list := source.Options{Type: "list", Key: guestsKey}
	upsert := mapping.Spec{Table: "guests", Key: []string{"id"}}
	insert := mapping.Spec{Table: "guests", Mode: mapping.ModeInsert, DedupeKey: []string{"id"}}
	kinds := []refusalKind{
		{"upsert", "CHECK", upsert, list, good, guest("-1", "1", name, mail), "RPUSH"},
		{"upsert", "foreign key", upsert, list, good, guest("30", "77", name, mail), "RPUSH"},
		{"upsert", "another unique index", upsert, list, good, guest("30", "1", name, `"taken"`), "RPUSH"},
		{"upsert", "trigger", upsert, list, good, guest("30", "1", `"nobody"`, mail), "RPUSH"},
		{"insert with `dedupe_key`", "CHECK", insert, list, good, guest("-1", "1", name, mail), "RPUSH"},
	}
	stay := func(nights int) func(id int) []any { return func(id int) []any { return []any{staysKey, id, nights} } }
	return append(kinds, refusalKind{"counters", "CHECK", mapping.Spec{Table: "stays", Key: []string{"id"},
		Columns: map[string]mapping.ColumnSpec{"id": {From: row.InputField}, "nights": {From: row.InputValue, Op: "add"}}},
		source.Options{Type: "counters", Key: staysKey}, stay(1), stay(1_000_000), "HINCRBY"})
}

// refusalTables refuse rows for these reasons.
func refusalTables(e engine) []string {
	out := []string{"CREATE TABLE countries (id " + e.key + ")", "INSERT INTO countries VALUES (1), (2)",
		fmt.Sprintf("CREATE TABLE guests (id %[1]s, name %[2]s NOT NULL, age %[3]s NOT NULL, country %[3]s, mail varchar(100) UNIQUE, "+
			"CHECK (age >= 0), FOREIGN KEY (country) REFERENCES countries (id))", e.key, e.text, e.integer),
		fmt.Sprintf("CREATE TABLE stays (id %s, nights %s NOT NULL, CHECK (nights < 1000))", e.key, e.integer)}
	switch e.driver {
	case postgres().driver:
		return append(out, `CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
			'BEGIN IF NEW.name = ''nobody'' THEN RAISE ''not this one''; END IF; RETURN NEW; END'`,
			"CREATE TRIGGER refuse BEFORE INSERT ON guests FOR EACH ROW EXECUTE FUNCTION refuse()")
	case maria().driver:
		return append(out, "CREATE TRIGGER refuse BEFORE INSERT ON guests FOR EACH ROW IF NEW.name = 'nobody' THEN "+
			"SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF")
	}
	return append(out, "CREATE TRIGGER refuse BEFORE INSERT ON guests WHEN NEW.name = 'nobody' BEGIN SELECT RAISE(ABORT, 'not this one'); END")
}

// measureRefused compares flushes with refused rows and flushes without refused rows.
func measureRefused(ctx context.Context, o options, out io.Writer) (verdict, err error) {
	if !o.wants(refusedPart, true) {
		return nil, nil
	}
	r := newReport(out, o)
	r.Printf("\nA flush with refused rows beside one without, into an empty table: rows a second, the CPU of both processes for 100,000 rows, and " +
		"the ratio of each to the clean one.\n")
	r.Printf("| database | way | reason | one row in | clean: rows/s | CPU s | refused: rows/s | CPU s | rows/s ÷ | CPU ÷ |")
	r.Printf("|---|---|---|--:|--:|--:|--:|--:|--:|--:|")
	var missed []string
	for _, e := range gridEngines() {
		kinds := slices.DeleteFunc(refusalKinds(), func(k refusalKind) bool {
			return !strings.Contains(e.driver+"/"+k.way+"/"+k.reason, o.cells)
		})
		if len(kinds) == 0 {
			continue
		}
		err := func() (err error) {
			b, err := newBed(ctx, e, o.dir)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, b.close()) }()
			if err := b.database.exec(ctx, refusalTables(e)...); err != nil {
				return err
			}
			for _, k := range kinds {
				if err := b.refusals(ctx, o, r, k, &missed); err != nil {
					return fmt.Errorf("%s, %s, %s: %w", e.title, k.way, k.reason, err)
				}
			}
			return nil
		}()
		if err != nil {
			return nil, err
		}
	}
	r.Printf("")
	r.Want(len(missed) == 0, "with one row of a hundred refused at least %.2f of the clean speed%s", leastOfClean, butNot(missed))
	if o.write == "" {
		return r.Verdict(), nil
	}
	return r.Verdict(), r.WriteInto(o.write, refusedTarget)
}

// refusals measures one kind of refusal.
func (b *bed) refusals(ctx context.Context, o options, r *report, k refusalKind, missed *[]string) error {
	for _, share := range []int{10_000, 100, 10} {
		if share != 100 && k.reason != "CHECK" {
			continue
		}
		var got [2][]result
		var flushes [2]*flush.Pipeline // each pipeline adapts to its own rows
		lead := newTerm()
		for i := range flushes {
			var err error
			t := task{DSN: b.database.dsn, Redis: b.redis}
			if flushes[i], err = newPipeline(b.database.engine, dataset{source: k.source, mapping: k.mapping}, t, 1); err != nil {
				return err
			}
		}
		for range o.rounds {
			for i, share := range []int{0, share} {
				one, err := b.refusal(ctx, flushes[i], lead, k, o.rows/2, share)
				if err != nil {
					return err
				}
				got[i] = append(got[i], one)
			}
		}
		cpu := func(g result) float64 { return g.CPU / float64(g.Rows) * 1e5 }
		ratio, ofCPU := rig.Ratio(got[1], got[0], result.perSecond), rig.Median(got[0], cpu)/rig.Median(got[1], cpu)
		mark := ""
		if share == 100 && ratio < leastOfClean {
			mark = " **MISSED**"
			*missed = append(*missed, fmt.Sprintf("%s %s %s", b.database.engine.title, k.way, k.reason))
		}
		r.Printf("| %s | %s | %s | %d | %s | %.2f | %s | %.2f | %.2f%s | %.2f |", b.database.engine.title, k.way, k.reason, share,
			rig.Thousands(rate(got[0])), rig.Median(got[0], cpu), rig.Thousands(rate(got[1])), rig.Median(got[1], cpu), ratio, mark, ofCPU)
	}
	return nil
}

// refusal flushes rows. One row in share is refused. With 0 no row is refused.
func (b *bed) refusal(ctx context.Context, flushing *flush.Pipeline, lead *term, k refusalKind, rows, share int) (result, error) {
	db := b.database
	if err := db.exec(ctx, "DELETE FROM guests", "DELETE FROM stays", "INSERT INTO guests (id, name, age, country, mail) VALUES (0, 'who has it', 1, 1, 'taken')"); err != nil {
		return result{}, err
	}
	bad := 0
	err := rig.Pipelined(b.conn, rows, func(i int) (string, []any) {
		if share > 0 && (i*7919+i/share)%share == 0 {
			bad++
			return k.command, k.bad(i + 1)
		}
		return k.command, k.good(i + 1)
	})
	if err != nil {
		return result{}, err
	}
	databaseCPU, err := db.cpuSeconds()
	if err != nil {
		return result{}, err
	}
	cpu, began := cpuSeconds(), time.Now()
	done, err := flushing.Run(ctx, lead)
	if err != nil {
		return result{}, err
	}
	got := result{Rows: int64(rows), Seconds: time.Since(began).Seconds(), CPU: cpuSeconds() - cpu}
	after, err := db.cpuSeconds()
	got.CPU += after - databaseCPU
	if done.Dead != int64(bad) || done.Rows != int64(rows-bad) {
		err = errors.Join(err, fmt.Errorf("of %d rows %d were to be refused: %d were, and %d were written", rows, bad, done.Dead, done.Rows))
	}
	if left, countErr := redis.Int(b.conn.Do("EXISTS", guestsKey, staysKey)); countErr != nil || left > 0 {
		err = errors.Join(err, countErr, fmt.Errorf("%d keys are left in Redis", left))
	}
	return got, err
}

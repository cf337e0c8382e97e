package sql_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/gomodule/redigo/redis"
	"github.com/shopspring/decimal"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/redisconn"
	"baton/internal/redisconn/redistest"
	"baton/internal/testsupport"
)

// term is a term that no other node disputes.
type term struct{}

func (term) Owner() string { return "owner" }
func (term) Epoch() int64  { return 1 }
func (term) Raise(context.Context, int64) (int64, error) {
	return 0, errors.New("nobody contests it")
}

// decimals returns a job that adds decimal counters of Redis to the columns n and f of the table sums.
func decimals(t *testing.T, db *bench, name string, guarantee row.Guarantee,
	sources func(inputs []string) (flush.Source, error)) *flush.Pipeline {
	t.Helper()
	ids := 0
	p, err := flush.New(flush.Config{
		Job: name, NodeID: "n", Sink: db.open(), Policy: flush.Policy{OnDecrease: flush.DecreaseSubtract},
		NewID: func() (string, error) { ids++; return fmt.Sprint(name, ids), nil },
		Mapping: mapping.Spec{Table: "sums", Key: []string{"id"}, Columns: map[string]mapping.ColumnSpec{
			"id": {From: row.InputField}, "n": {From: row.InputValue}, "f": {From: row.InputValue},
		}},
		Inputs: row.Inputs{Names: []string{row.InputField, row.InputValue}, Guarantee: guarantee},
		NewSources: func(inputs []string) ([]flush.Source, error) {
			s, err := sources(inputs)
			return []flush.Source{s}, err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// Redis writes a decimal with up to 17 digits after its point, and a client may set a value with an exponent. A numeric column must contain
// the exact sum of the values. A float column must contain the sum with the precision of floats.
func TestDecimalsOfRedisAreSummedExactly(t *testing.T) {
	server := testsupport.StartRedis(t)
	store := redistest.Open(t, redisconn.Options{URL: server.URL()})
	conn := server.Conn()
	do := func(name string, args ...any) string {
		t.Helper()
		reply, err := redis.String(conn.Do(name, args...))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		return reply
	}
	inTurn(t, func(t *testing.T, db *bench) {
		db.create(
			"CREATE TABLE sums (id varchar(20) PRIMARY KEY, n numeric(60,30), f double precision)",
			"CREATE TABLE sums (id varchar(20) COLLATE utf8mb4_nopad_bin PRIMARY KEY, n decimal(60,30), f double) ENGINE=InnoDB",
			"CREATE TABLE sums (id varchar(20) PRIMARY KEY, n double, f double)")
		for _, guarantee := range []row.Guarantee{row.ByLedger, row.ByMark} {
			watermark := guarantee == row.ByMark
			conn.Do("FLUSHALL") //nolint:errcheck // what is left would be noticed
			db.Exec(t, "DELETE FROM sums")
			p := decimals(t, db, fmt.Sprint("watermark-", watermark), guarantee, func(inputs []string) (flush.Source, error) {
				if watermark {
					return source.NewTotals(store, source.TotalsOptions{Job: "j", Key: "sums", Inputs: inputs})
				}
				return source.NewCounters(store, source.CountersOptions{Job: "j", Key: "sums", Inputs: inputs})
			})
			want := map[string]decimal.Decimal{}
			for round := range 4 {
				added := map[string]string{}
				for i, step := range []string{"0.1", "-0.7", "3.0e-7", "1234567.890123456789", "1e15", "-5.5e2", "0.00000000000000001"} {
					field := fmt.Sprint("f", i)
					added[field] = do("HINCRBYFLOAT", "sums", field, step)
				}
				for field, text := range map[string]string{"x1": "1.5e-20", "x2": "-2.50E+10", "x3": "+7.0",
					"x4": "0.123456789012345678901234567890"} {
					if watermark {
						text = decimal.RequireFromString(text).Mul(decimal.NewFromInt(int64(round + 1))).String()
					}
					added[field] = text
					if _, err := conn.Do("HSET", "sums", field, text); err != nil {
						t.Fatal(err)
					}
				}
				for field, text := range added {
					if watermark {
						want[field] = decimal.RequireFromString(text)
					} else {
						want[field] = want[field].Add(decimal.RequireFromString(text))
					}
				}
				if res, err := p.Run(t.Context(), term{}); err != nil || res.Dead != 0 {
					t.Fatalf("run: %+v, %v", res, err)
				}
			}
			compareSums(t, db, want)
		}
	})
}

// compareSums compares both columns with the expected sums.
func compareSums(t *testing.T, db *bench, want map[string]decimal.Decimal) {
	t.Helper()
	rows := db.Rows(t, "SELECT id, n, f FROM sums ORDER BY id")
	if len(rows) != len(want) {
		t.Errorf("%d rows, want %d", len(rows), len(want))
	}
	for i, field := range slices.Sorted(maps.Keys(want)) {
		n, errN := decimal.NewFromString(rows[i][1])
		f, errF := decimal.NewFromString(rows[i][2])
		if errN != nil || errF != nil || rows[i][0] != field {
			t.Errorf("row %q for %s: %v, %v", rows[i], field, errN, errF)
			continue
		}
		// SQLite stores decimals only as floats.
		near := want[field].Abs().Mul(decimal.New(1, -14)).Add(decimal.New(1, -16))
		if exact := db.Driver != "sqlite"; exact && !n.Equal(want[field]) || n.Sub(want[field]).Abs().GreaterThan(near) {
			t.Errorf("%s: numeric is %s, want %s", field, n, want[field])
		}
		if f.Sub(want[field]).Abs().GreaterThan(near) {
			t.Errorf("%s: float is %s, want %s", field, f, want[field])
		}
	}
}

package poison_test

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"baton/internal/flush"
	"baton/internal/flush/mapping"
	"baton/internal/flush/row"
	"baton/internal/flush/source"
	"baton/internal/flush/sql"
	"baton/internal/flush/sql/open"
	"baton/internal/redisconn"
	"baton/internal/testsupport"
)

// odd are names of keys and of members. Some of them no column of ten characters holds.
var odd = []string{
	"", " ", "a", "A", "a ", " a", "á", "ß", "中", "😀", "0", "00", "a\x00b", "a\xff", "a:b", "exactly 10", "eleven char", "\r\n", "'", `"`, `\`,
	"%", "_", "*", "{a}", strings.Repeat("long", 10_000),
}

const mysqlBoards = "(owner varchar(10) CHARACTER SET %[1]s COLLATE %[1]s_nopad_bin, member varchar(10) CHARACTER SET %[1]s COLLATE " +
	"%[1]s_nopad_bin, score smallint, PRIMARY KEY (owner, member))"

// Whatever the keys and their members are called, the table has those that its columns hold, and no others.
func TestACaptureOfOddNamesIsExact(t *testing.T) {
	const boards = "(owner varchar(10), member varchar(10), score smallint, PRIMARY KEY (owner, member))"
	const checked = "(owner varchar(10) CHECK (length(owner) <= 10), member varchar(10) CHECK (length(member) <= 10), score smallint, " +
		"PRIMARY KEY (owner, member))"
	for _, kind := range []struct {
		name, columns, lacks string // letters that the columns lack
		make                 func(testing.TB) *testsupport.Database
	}{
		{"postgres", boards, "", testsupport.Postgres}, {"sqlite", checked, "", testsupport.SQLite},
		{"mariadb", fmt.Sprintf(mysqlBoards, "utf8mb4"), "", testsupport.MariaDB},
		{"mariadb, latin1", fmt.Sprintf(mysqlBoards, "latin1"), "中😀", testsupport.MariaDB},
	} {
		for lanes, missing := range map[int]string{1: "delete", 2: "null"} {
			t.Run(fmt.Sprintf("%s, %s", kind.name, missing), func(t *testing.T) {
				t.Parallel()
				if kind.lacks != "" {
					testsupport.NeedsDialect(t, testsupport.DialectMariaDB) // MySQL pads what is not Unicode
				}
				newBoards(t, kind.make(t), kind.columns, source.Options{
					Job: "capture", Type: "capture", Key: "o:<owner>", Value: "zset", Rows: 40, MaxPct: 100, OnMissing: missing, Lanes: lanes,
				}).tried(func(name string) bool {
					return utf8.ValidString(name) && utf8.RuneCountInString(name) <= 10 && !strings.ContainsAny(name, "\x00"+kind.lacks)
				})
			})
		}
	}
}

// boards are sorted sets that a capture writes into a table.
type boards struct {
	t *testing.T
	testsupport.Client
	db       *testsupport.Database
	pipeline *flush.Pipeline
	want     map[string]map[string]int // scores by owner and member
}

func newBoards(t *testing.T, db *testsupport.Database, columns string, o source.Options) *boards {
	db.Exec(t, "CREATE TABLE boards "+columns)
	r := testsupport.StartRedis(t)
	b := &boards{t: t, db: db, Client: r.Client(t), want: map[string]map[string]int{}}
	store, err := redisconn.Open(redisconn.Options{URL: r.URL()})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := open.Database(db.Driver, sql.Options{Name: "main", DSN: db.DSN})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = store.Close()
		_ = sink.Close()
	})
	config := flush.Config{
		Job: o.Job, NodeID: "n", Sink: sink, Lanes: o.Lanes,
		NewID: func() (string, error) { return rand.Text(), nil },
		Mapping: mapping.Spec{Table: "boards", Key: []string{"owner", "member"}, Columns: map[string]mapping.ColumnSpec{
			"owner": {}, "member": {From: row.InputMember}, "score": {From: row.InputScore},
		}},
	}
	described, err := source.Describe(o)
	if err != nil {
		t.Fatal(err)
	}
	described.Configure(&config, store)
	if b.pipeline, err = flush.New(config); err != nil {
		t.Fatal(err)
	}
	return b
}

// tried changes members and keys in every way, and compares.
func (b *boards) tried(fits func(name string) bool) {
	for i, owner := range odd {
		for j, member := range odd {
			if (i+j)%3 > 0 {
				b.put(owner, member, i+j)
			}
		}
	}
	b.check("all keys are read", fits)
	for i, owner := range odd {
		for j, member := range odd {
			switch (i*7 + j) % 5 {
			case 0:
				b.Do("ZREM", "o:"+owner, member)
				delete(b.want[owner], member)
			case 1:
				b.put(owner, member, 100+i+j)
			}
		}
	}
	b.check("members came and went", fits)
	for i, owner := range odd {
		next := odd[(i+1)%len(odd)]
		switch i % 4 {
		case 0:
			b.take(owner)
		case 1:
			b.take(owner)
			b.Do("SET", "o:"+owner, "x")
		case 2:
			if len(b.want[owner]) > 0 {
				b.Do("RENAME", "o:"+owner, "o:"+next)
				b.want[next] = b.want[owner]
				delete(b.want, owner)
			}
		}
	}
	b.check("keys went, and have another type or name", fits)
	for _, owner := range odd {
		b.take(owner)
		b.put(owner, "a", 1)
		b.put(owner, owner, 2)
	}
	b.check("keys came back", fits)
	for _, owner := range odd {
		b.take(owner)
	}
	b.check("nothing is left", fits)
}

func (b *boards) put(owner, member string, score int) {
	b.Do("ZADD", "o:"+owner, score, member)
	if b.want[owner] == nil {
		b.want[owner] = map[string]int{}
	}
	b.want[owner][member] = score
}

func (b *boards) take(owner string) {
	b.Do("DEL", "o:"+owner)
	delete(b.want, owner)
}

// check runs, and compares.
func (b *boards) check(round string, fits func(name string) bool) {
	b.t.Helper()
	if _, err := b.pipeline.Run(b.t.Context(), leadership(1)); err != nil {
		b.t.Fatalf("%s: %v", round, err)
	}
	want, got := map[string]string{}, map[string]string{}
	for owner, members := range b.want {
		for member, score := range members {
			if fits(owner) && fits(member) {
				want[fmt.Sprintf("%q %q", owner, member)] = fmt.Sprint(score)
			}
		}
	}
	for _, r := range b.db.Rows(b.t, "SELECT owner, member, score FROM boards WHERE score IS NOT NULL") {
		got[fmt.Sprintf("%q %q", r[0], r[1])] = r[2]
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if got[name] != want[name] {
			b.t.Errorf("%s: the score of %s is %q, want %q", round, name, got[name], want[name])
		}
		delete(got, name)
	}
	if len(got) > 0 {
		b.t.Errorf("%s: rows without a member: %q", round, got)
	}
}

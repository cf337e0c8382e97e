package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/cmd/baton/internal/cmdline"
	"baton/internal/diagnose"
	"baton/internal/operate"
	"baton/internal/testsupport"
)

const deadConfig = `
redis: {url: "%s"}
election: {ttl: 10s}
http: {listen: "off"}
databases:
  main: {driver: sqlite, dsn: "%s"}
  other: {driver: sqlite, dsn: "%s"}
jobs:
  - name: views
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: views}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: $value}
  - name: users
    schedule: "@every 1s"
    flush:
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: users, key: [id]}
  - name: orders
    schedule: "@every 1s"
    flush:
      from: {type: list, key: orders}
      to: {database: other, table: orders, key: [id]}
  - name: totals
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: totals, mode: watermark}
      to: {database: main, table: sums, key: [id]}
      columns: {id: $field, n: $value}
`

// deadLab is a node with jobs that get invalid records.
type deadLab struct {
	*cli
	main, other *testsupport.Database
	redis       redis.Conn
}

func newDeadLab(t *testing.T) *deadLab {
	t.Helper()
	l := &deadLab{cli: newCLI(t), main: testsupport.SQLite(t), other: testsupport.SQLite(t)}
	r := useRedis(t)
	l.redis = r.Conn()
	l.main.Exec(t, "CREATE TABLE articles (id INTEGER PRIMARY KEY, views INTEGER CHECK (views < 1000))")
	l.main.Exec(t, "CREATE TABLE sums (id INTEGER PRIMARY KEY, n INTEGER)")
	l.main.Exec(t, "CREATE TABLE users (id INTEGER PRIMARY KEY, name TEXT NOT NULL, age INTEGER)")
	l.other.Exec(t, "CREATE TABLE orders (id INTEGER PRIMARY KEY, city TEXT, pieces INTEGER NOT NULL)")
	l.file("baton.yaml", fmt.Sprintf(deadConfig, r.URL(), l.main.DSN, l.other.DSN))
	l.env["BATON_CONFIG"] = "baton.yaml"
	return l
}

// letter contains the fields of a letter in the output of dead list -o json.
type letter struct {
	operate.LetterKey
	BatchID string          `json:"batch_id"`
	At      time.Time       `json:"at"`
	Error   string          `json:"error"`
	Record  json.RawMessage `json:"record"`
}

func (l *deadLab) send(command string, args ...any) {
	l.t.Helper()
	if _, err := l.redis.Do(command, args...); err != nil {
		l.t.Fatal(err)
	}
}

// letters waits until a job has the wanted number of dead letters, and returns them, the newest letter first.
func (l *deadLab) letters(job string, want int) []letter {
	l.t.Helper()
	var got []letter
	testsupport.AwaitNoError(l.t, fmt.Sprintf("job %s to have %d dead letters", job, want), func() error {
		r := l.run("dead", "list", "--job", job, "-o", "json")
		if r.code != cmdline.ExitOK {
			l.t.Fatalf("%+v", r)
		}
		err := json.Unmarshal([]byte(r.stdout), &got)
		if err == nil && len(got) != want {
			err = fmt.Errorf("it has %+v", got)
		}
		return err
	})
	return got
}

// rows waits until a query returns the wanted rows.
func (l *deadLab) rows(db *testsupport.Database, query string, want ...string) {
	l.t.Helper()
	testsupport.AwaitNoError(l.t, fmt.Sprintf("%s to return %q", query, want), func() error {
		var got []string
		for _, row := range db.Rows(l.t, query) {
			got = append(got, strings.Join(row, "|"))
		}
		if !slices.Equal(got, want) {
			return fmt.Errorf("it returns %q", got)
		}
		return nil
	})
}

// does runs a command that must succeed, and returns its output.
func (l *deadLab) does(args ...string) string {
	l.t.Helper()
	r := l.run(args...)
	if r.code != cmdline.ExitOK || !regexp.MustCompile(unhurried).MatchString(r.stderr) {
		l.t.Errorf("baton %s: %+v", strings.Join(args, " "), r)
	}
	return r.stdout
}

// fails runs a command that must end with the given exit code and print the given text.
func (l *deadLab) fails(code int, says string, args ...string) {
	l.t.Helper()
	if r := l.run(args...); r.code != code || !strings.Contains(r.stdout+r.stderr, says) {
		l.t.Errorf("baton %s: %+v; want %d and %q", strings.Join(args, " "), r, code, says)
	}
}

func TestDeadLettersAreListedShownReplayedAndDropped(t *testing.T) {
	l := newDeadLab(t)
	if got := l.does("dead", "list"); got != "no dead letters\n" {
		t.Errorf("before anything was flushed: %q", got)
	}
	l.send("HSET", "views", "1", "5", "2", "5000", "no number", "7")
	l.send("HSET", "user:1", "name", "Ann", "age", "un\x1b[31mknown")
	l.send("HSET", "user:2", "name", "Bob", "age", "20")
	l.send("SADD", "changed:user", "1", "2")
	l.send("RPUSH", "orders", `{"id":1,"city":"Bonn","pieces":"many"}`, `{"id":2,"city":"Rome","pieces":2}`, `{"id":3`)
	log, stop := l.daemon()
	defer func() {
		if t.Failed() {
			t.Log(log.String())
		}
	}()

	views, users, orders := l.letters("views", 2), l.letters("users", 1), l.letters("orders", 2)
	l.rows(l.main, "SELECT id, views FROM articles", "1|5")
	l.rows(l.other, "SELECT id FROM orders", "2")

	t.Run("list", func(t *testing.T) {
		got := l.does("dead", "list")
		head := regexp.MustCompile(`^ID +AT +DATABASE +JOB +REASON +RECORD\n`)
		if !head.MatchString(got) || strings.Count(got, "\n") != 6 || strings.Contains(got, "\x1b") || !strings.Contains(got, users[0].ID[:12]) {
			t.Errorf("list:\n%s", got)
		}
		if got := l.does("dead", "list", "--job", "orders", "-n", "1"); strings.Count(got, "\n") != 3 || !strings.Contains(got, "there may be more") {
			t.Errorf("list -n 1:\n%s", got)
		}
		if got := l.does("dead", "list", "--since", "1h", "--text", "Ann"); strings.Count(got, "\n") != 2 {
			t.Errorf("list --text:\n%s", got)
		}
		if got := l.does("dead", "list", "--older-than", "1h"); got != "no dead letters\n" {
			t.Errorf("list --older-than:\n%s", got)
		}
		if got := l.does("dead", "list", "--count"); !regexp.MustCompile(`(?m)^1 +users .* column "age" \(integer\): …`).MatchString(got) {
			t.Errorf("list --count:\n%s", got)
		}
	})
	t.Run("show", func(t *testing.T) {
		got := l.does("dead", "show", users[0].ID[:12])
		for _, want := range []string{"id        " + users[0].ID, "job       users", "database  main", `"name": "Ann"`, "baton dead replay " + users[0].ID[:12], "baton dead drop " + users[0].ID[:12]} {
			if !strings.Contains(got, want) {
				t.Errorf("show lacks %q:\n%s", want, got)
			}
		}
		var one letter
		if err := json.Unmarshal([]byte(l.does("dead", "show", users[0].ID, "-o", "json")), &one); err == nil && one.ID != users[0].ID {
			t.Errorf("show -o json: %+v", one)
		}
		l.fails(cmdline.ExitFailure, "no such dead letter", "dead", "show", "0123456789ab")
	})
	t.Run("replay counters", func(t *testing.T) {
		for _, v := range views {
			if strings.Contains(string(v.Record), "5000") {
				l.fails(cmdline.ExitFailure, "CHECK constraint", "dead", "replay", v.ID) // the record still does not fit
				l.main.Exec(t, "INSERT INTO articles VALUES (2, -4500)")                 // now the record fits
				if got := l.does("dead", "replay", v.ID); !strings.Contains(got, "1 dead letter replayed, 0 not") {
					t.Errorf("replay: %s", got)
				}
				l.fails(cmdline.ExitFailure, "no such dead letter", "dead", "replay", v.ID)
				continue
			}
			l.fails(cmdline.ExitFailure, "it uses $field, $value", "dead", "replay", v.ID, "--set", "nonsense=1")
			l.does("dead", "replay", v.ID, "--set", "$field=3")
		}
		l.rows(l.main, "SELECT id, views FROM articles ORDER BY id", "1|5", "2|500", "3|7")
	})
	t.Run("replay hashes", func(t *testing.T) {
		l.fails(cmdline.ExitUsage, "Correct the values in Redis", "dead", "replay", users[0].ID, "--set", "age=30")
		l.send("HSET", "user:1", "age", "31")
		if got := l.does("dead", "replay", "--job", "users", "--all"); !strings.Contains(got, "marked: the next flush writes row \"1\"") {
			t.Errorf("replay: %s", got)
		}
		l.rows(l.main, "SELECT id, name, age FROM users ORDER BY id", "1|Ann|31", "2|Bob|20")
		l.letters("users", 0)
	})
	t.Run("replay list", func(*testing.T) {
		for _, o := range orders {
			if strings.Contains(string(o.Record), "$unread") {
				l.fails(cmdline.ExitFailure, "could not read", "dead", "replay", o.ID)
				l.does("dead", "replay", o.ID, "--set", "id=3", "--set-null", "city", "--set", "pieces=3")
				continue
			}
			l.send("RPUSH", "orders", `{"id":1,"city":"Cologne","pieces":9}`)
			l.rows(l.other, "SELECT id, city FROM orders WHERE id = 1", "1|Cologne")
			l.fails(cmdline.ExitFailure, "may be newer", "dead", "replay", o.ID, "--set", "pieces=4")
			l.rows(l.other, "SELECT id, city FROM orders WHERE id = 1", "1|Cologne")
			l.does("dead", "replay", o.ID, "--set", "pieces=4", "--overwrite")
		}
		l.rows(l.other, "SELECT * FROM orders ORDER BY id", "1|Bonn|4", "2|Rome|2", "3|NULL|3")
		l.letters("orders", 0)
	})
	t.Run("drop", func(t *testing.T) {
		l.send("HSET", "views", "a", "1", "b", "2", "c", "3")
		views := l.letters("views", 3)
		stop()
		l.fails(cmdline.ExitUsage, "add --yes", "dead", "drop", views[0].ID)
		l.fails(cmdline.ExitUsage, "add --all", "dead", "drop", "--job", "views", "--yes")
		l.fails(cmdline.ExitUsage, "which dead letters", "dead", "drop", "--yes")
		l.fails(cmdline.ExitUsage, "not both", "dead", "drop", views[0].ID, "--job", "views", "--yes")
		l.fails(cmdline.ExitFailure, "no such dead letter", "dead", "drop", views[0].ID, "0123456789ab", "--yes")
		l.letters("views", 3)
		if got := l.does("dead", "drop", views[0].ID, "--yes"); got != "1 dead letter dropped\n" {
			t.Errorf("drop: %q", got)
		}
		l.letters("views", 2)

		// The job is removed from the configuration, but its letters still exist.
		text := fmt.Sprintf(deadConfig, "redis://127.0.0.1:1", l.main.DSN, l.other.DSN)
		at, end := strings.Index(text, "  - name: views"), strings.Index(text, "  - name: users")
		l.file("baton.yaml", text[:at]+text[end:])
		l.fails(cmdline.ExitUsage, "--database", "dead", "list", "--job", "views")
		if got := l.does("dead", "show", views[1].ID); !strings.Contains(got, "not in the configuration any more") || strings.Contains(got, "baton dead replay") {
			t.Errorf("show: %s", got)
		}
		l.fails(cmdline.ExitUsage, "is not in the configuration", "dead", "replay", views[1].ID)
		l.fails(cmdline.ExitUsage, "no database", "dead", "list", "--database", "none")
		if got := l.does("dead", "drop", "--job", "views", "--database", "main", "--all", "--yes"); got != "2 dead letters dropped\n" {
			t.Errorf("drop: %q", got)
		}
	})
}

// TestDeadLettersOfTotalsAreNeverCountedTwice checks the replay of dead letters of totals. If the total was no number, no part of it is
// missing in the row, so the letter must be dropped. If the row did not fit, the letter contains the difference, which the replay must add
// exactly once.
func TestDeadLettersOfTotalsAreNeverCountedTwice(t *testing.T) {
	l := newDeadLab(t)
	l.send("HSET", "totals", "no number", "5", "2", "abc")
	l.daemon()
	for _, letter := range l.letters("totals", 2) {
		if strings.Contains(string(letter.Record), "abc") {
			l.fails(cmdline.ExitFailure, "drop the letter", "dead", "replay", letter.ID, "--set", "$field=2", "--set", "$value=7")
			continue
		}
		l.send("HSET", "totals", "no number", "7", "2", "40") // the total grows further
		l.letters("totals", 3)
		l.does("dead", "replay", letter.ID, "--set", "$field=1")
	}
	l.rows(l.main, "SELECT id, n FROM sums ORDER BY id", "1|5", "2|40")
}

func TestADatabaseThatIsAwayDoesNotHideTheLettersOfAnother(t *testing.T) {
	l := newDeadLab(t)
	l.send("HSET", "views", "no number", "7")
	_, stop := l.daemon()
	l.letters("views", 1)
	stop()
	l.file("baton.yaml", strings.Replace(fmt.Sprintf(deadConfig, "redis://127.0.0.1:1", l.main.DSN, "X"), `{driver: sqlite, dsn: "X"}`,
		`{driver: postgres, dsn: "postgres://app:s3cret@127.0.0.1:1/app"}`, 1))
	got := l.run("dead", "list")
	if got.code != cmdline.ExitFailure || !strings.Contains(got.stdout, "views") || !strings.Contains(got.stderr, `"other"`) || strings.Contains(got.stderr, "s3cret") {
		t.Errorf("list: %+v", got)
	}
}

// TestTheDocumentedCommandsForDeadLettersWork runs each command in the documentation that an operator may copy.
func TestTheDocumentedCommandsForDeadLettersWork(t *testing.T) {
	text, err := os.ReadFile("../../docs/dead-letters.md")
	if err != nil {
		t.Fatal(err)
	}
	l := newDeadLab(t)
	l.send("HSET", "views", "no number", "7")
	l.send("RPUSH", "orders", `{"id":1,"city":"Bonn","pieces":"many"}`)
	_, stop := l.daemon()
	l.letters("views", 1)
	id := l.letters("orders", 1)[0].ID[:12]
	stop()
	commands := regexp.MustCompile(`(?m)^baton (.*?)(?: +#.*)?$`).FindAllStringSubmatch(string(text), -1)
	if len(commands) < 12 {
		t.Fatalf("the document shows %d commands", len(commands))
	}
	for _, c := range commands {
		var args []string
		for _, arg := range regexp.MustCompile(`'[^']*'|\S+`).FindAllString(c[1], -1) {
			args = append(args, strings.ReplaceAll(strings.Trim(arg, "'"), "3f2a9c41d07b", id))
		}
		if got := l.run(args...); got.code == cmdline.ExitUsage {
			t.Errorf("%s: %+v", c[0], got)
		}
	}
	l.letters("orders", 0) // one of the commands has replayed the letters
	l.letters("views", 0)  // another command has dropped the letters
}

func TestStatusTellsOfDeadLettersUntilTheyAreSeenTo(t *testing.T) {
	l := newDeadLab(t)
	l.send("HSET", "views", "no number", "7")
	l.daemon()
	id := l.letters("views", 1)[0].ID
	testsupport.Await(t, "a later run, which does not count the letter", func() bool {
		var s diagnose.Snapshot
		if err := json.Unmarshal([]byte(l.does("status", "-o", "json")), &s); err != nil {
			t.Fatal(err)
		}
		r := s.Jobs[0].LastRun
		return r != nil && r.Dead == 0 && r.State == "succeeded"
	})
	if got := l.does("status"); !strings.Contains(got, "views has 1 dead letter waiting  → baton dead list --count --job views") {
		t.Errorf("status hides it:\n%s", got)
	}
	l.does("dead", "drop", id, "--yes")
	if got := l.does("status"); strings.Contains(got, "dead letter") {
		t.Errorf("status still tells of it:\n%s", got)
	}
}

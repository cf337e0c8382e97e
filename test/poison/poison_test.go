package poison_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/gomodule/redigo/redis"

	"baton/internal/flush/row"
	"baton/internal/testsupport"
)

// kills are where the process dies, one after the other, before one is left alone.
var kills = []struct {
	step  string
	times int // that the step comes by before
}{
	{"after rows", 1},         // of the second batch: the first is in the database
	{"after dead letters", 0}, // the letters were written, and are rolled back
	{"after commit", 0},       // committed, and nobody knows
	{"page removed", 0},       // the page has left the stage
}

func TestBadRowsAreDeadLettersAndGoodRowsArriveWhereverTheProcessDies(t *testing.T) {
	for _, kind := range []struct {
		name string
		make func(testing.TB) *testsupport.Database
	}{{"postgres", testsupport.Postgres}, {"mariadb", testsupport.MariaDB}, {"sqlite", testsupport.SQLite}} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			db, r := kind.make(t), testsupport.StartRedis(t)
			db.Exec(t, "CREATE TABLE city (id int PRIMARY KEY)")
			db.Exec(t, "INSERT INTO city VALUES (1), (2), (3), (4), (5)")
			for _, source := range []string{"hashes", "list"} {
				t.Run(source, func(t *testing.T) { poison(t, r, db, source) })
			}
			t.Run("zset", func(t *testing.T) { poisonMembers(t, r, db) })
		})
	}
}

// dieAndFinish flushes while the process is killed again and again, and once more.
func (s spec) dieAndFinish(t *testing.T) {
	t.Helper()
	for _, kill := range kills {
		s.Epoch++
		s.KillAt, s.Times = kill.step, kill.times
		if err := s.run(t); !killed(err) {
			t.Fatalf("the process should have died at %q: %v", kill.step, err)
		}
	}
	s.Epoch++
	s.KillAt = ""
	if err := s.run(t); err != nil {
		t.Fatalf("left alone, it failed: %v", err)
	}
}

func poison(t *testing.T, r *testsupport.Redis, db *testsupport.Database, source string) {
	columns := tables[db.Driver]
	if strings.Contains(columns, "%s") {
		columns = fmt.Sprintf(columns, source)
	}
	db.Exec(t, "CREATE TABLE "+source+"_rows "+columns)
	all := rows()
	produce(t, r.Conn(), source, all)
	spec{Driver: db.Driver, DSN: db.DSN, RedisURL: r.URL(), Source: source}.dieAndFinish(t)
	checkGood(t, db, source, all)
	checkBad(t, db, source, all)
}

func produce(t *testing.T, c redis.Conn, source string, all []entry) {
	t.Helper()
	send := func(command string, args ...any) {
		if err := c.Send(command, args...); err != nil {
			t.Fatal(err)
		}
	}
	send("FLUSHALL")
	for _, r := range all {
		if source == "list" {
			send("RPUSH", "items", r.item())
			continue
		}
		send("HSET", redis.Args{"row:" + strconv.Itoa(r.id)}.AddFlat(r.fields)...)
		send("SADD", "changed", r.id)
	}
	if _, err := c.Do(""); err != nil {
		t.Fatal(err)
	}
}

// run flushes in a process of its own.
func (s spec) run(t *testing.T) error {
	t.Helper()
	text, err := json.Marshal(s)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), workerEnv+"="+string(text))
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("%w\n%s", err, out)
	}
	return nil
}

func killed(err error) bool {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

func checkGood(t *testing.T, db *testsupport.Database, source string, all []entry) {
	t.Helper()
	got := map[string]bool{}
	for _, r := range db.Rows(t, "SELECT id, name, age, city FROM "+source+"_rows") {
		got[strings.Join(r, "|")] = true
	}
	wrong, want := 0, 0
	for _, r := range all {
		if r.bad != nil {
			continue
		}
		want++
		if !got[r.good()] {
			wrong++
			if wrong < 5 {
				t.Errorf("good row %s is not in the table", r.good())
			}
		}
	}
	if wrong > 0 || len(got) != want {
		t.Errorf("%d rows in the table, want %d; %d of those are not there", len(got), want, wrong)
	}
}

var idOfItem = regexp.MustCompile(`"id":"(\d+)"`)

// checkBad wants each bad row once, whole enough to tell which it was, and its reason.
func checkBad(t *testing.T, db *testsupport.Database, source string, all []entry) {
	t.Helper()
	letters := map[int][]string{}
	for _, l := range db.Rows(t, "SELECT record, error FROM baton_dead_letter WHERE job = '"+source+"'") {
		record, err := row.ParseRecordJSON(nil, l[0])
		if err != nil {
			t.Errorf("%s: %v", l[0], err)
		}
		key := record.Key
		if source == "list" { // whose key is the whole item
			if m := idOfItem.FindStringSubmatch(key); m != nil {
				key = m[1]
			}
		}
		id, err := strconv.Atoi(key)
		if err != nil {
			t.Errorf("a dead letter of no row: %q", l)
			continue
		}
		if source == "list" && record.Key != all[id].item() {
			t.Errorf("the item %q is kept as %q", all[id].item(), record.Key)
		}
		letters[id] = append(letters[id], l[1])
	}
	kinds := map[string]string{}
	for _, r := range all {
		switch found := letters[r.id]; {
		case r.bad == nil && len(found) > 0:
			t.Errorf("good row %d is a dead letter: %q", r.id, found)
		case r.bad == nil:
		case len(found) != 1:
			t.Errorf("row %d (%s) is %d dead letters: %q", r.id, r.bad.name, len(found), found)
		default:
			kinds[r.bad.name] = found[0]
			want, ok := r.bad.reason[db.Driver]
			if !ok {
				want = r.bad.reason[""]
			}
			if !strings.Contains(strings.ToLower(found[0]), strings.ToLower(want)) {
				t.Errorf("row %d (%s): the reason %q does not say %q", r.id, r.bad.name, found[0], want)
			}
		}
	}
	for _, way := range ways {
		if kinds[way.name] == "" {
			t.Errorf("no row was bad in this way: %s", way.name)
		}
		t.Logf("%-32s %s", way.name, kinds[way.name])
	}
}

package clients

import (
	"bufio"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// each runs a test once with the program of each language.
func each(t *testing.T, test func(t *testing.T, l language, program []string)) {
	t.Helper()
	for _, l := range languages() {
		t.Run(l.name, func(t *testing.T) {
			t.Parallel()
			test(t, l, l.program(t))
		})
	}
}

// ask runs the program to its end, and returns the program's output.
func ask(t *testing.T, program []string, args ...string) string {
	t.Helper()
	return strings.TrimSpace(run(t, "", program[0], append(program[1:], args...)...))
}

func do(t *testing.T, c redis.Conn, command string, args ...any) {
	t.Helper()
	if _, err := c.Do(command, args...); err != nil {
		t.Fatal(err)
	}
}

// The test checks that all languages send the same commands to Redis: the change, and after it, in the same transaction, the mark.
func TestAChangeAndItsMarkAreOneTransaction(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ language, program []string) {
		server := testsupport.StartRedis(t)
		monitor := server.Conn()
		do(t, monitor, "MONITOR")
		ask(t, program, server.Addr(), "each")
		do(t, server.Conn(), "SET", "the", "end")
		want := []string{
			`MULTI`, `HSET user:\xc3\xa4 1 n 7`, `SADD changed:user \xc3\xa4 1`, `EXEC`,
			`MULTI`, `UNLINK user:2`, `SADD changed:user 2`, `EXEC`,
			`MULTI`, `INCRBY hits:home 2`, `SADD changed:hits home`, `EXEC`,
			`HINCRBY views:3 123456789 3`, // the CRC-16 of 123456789 is 0x31c3
			`MULTI`, `ZADD board 1 a 2 b`, `ZADD changed:board NOW a NOW b`, `EXEC`,
			`SET the end`,
		}
		if got := heard(t, monitor); !slices.Equal(got, want) {
			t.Errorf("Redis was sent\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	})
}

// heard returns the commands that clients send, from a MONITOR, up to the key "the". It joins commands that clients may send in several
// parts, such as the members of one ZADD. It replaces present times with NOW.
func heard(t *testing.T, monitor redis.Conn) []string {
	t.Helper()
	var all []string
	for {
		line, err := redis.String(monitor.Receive())
		if err != nil {
			t.Fatal(err)
		}
		words := strings.Split(line, ` "`)[1:]
		for i, w := range words {
			words[i] = strings.ReplaceAll(strings.TrimSuffix(w, `"`), `\\`, `\`)
			if ms, err := strconv.ParseFloat(words[i], 64); err == nil && time.Since(time.UnixMilli(int64(ms))).Abs() < time.Minute {
				words[i] = "NOW"
			}
		}
		switch words[0] = strings.ToUpper(words[0]); words[0] {
		case "MULTI", "EXEC", "HSET", "SADD", "UNLINK", "INCRBY", "HINCRBY", "SET":
		case "ZADD":
			for i := 2; i < len(words); i += 2 {
				words[i] = strings.TrimSuffix(words[i], ".0")
			}
			if last := len(all) - 1; strings.HasPrefix(all[last], "ZADD "+words[1]+" ") {
				all[last] += " " + strings.Join(words[2:], " ")
				continue
			}
		default:
			continue // a command of the client library itself
		}
		all = append(all, strings.Join(words, " "))
		if words[0] == "SET" {
			return all
		}
	}
}

const tables = `
CREATE TABLE users (id integer PRIMARY KEY, n integer NOT NULL);
CREATE TABLE pages (page integer PRIMARY KEY, hits bigint NOT NULL DEFAULT 0);
CREATE TABLE articles (id integer PRIMARY KEY, views bigint NOT NULL DEFAULT 0);`

const config = `node: {id: clients}
redis: {url: %q}
http: {listen: "off"}
databases: {main: {driver: sqlite, dsn: %q}}
jobs:
  - name: users
    schedule: "@always"
    flush:
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: users, key: [id]}
  - name: hits
    schedule: "@always"
    flush:
      from: {type: counters, key: "hits:<page>", changed: "changed:hits"}
      to: {database: main, table: pages, key: [page]}
      columns: {page: page, hits: {from: $value, op: add}}
  - name: views
    schedule: "@always"
    flush:
      from: {type: counters, key: "views:[0-15]"}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: {from: $value, op: add}}
`

// flushed starts a Redis, a database, and a node that flushes from Redis into the database.
func flushed(t *testing.T) (*testsupport.Redis, *testsupport.Database) {
	t.Helper()
	server, db := testsupport.StartRedis(t), testsupport.SQLite(t)
	db.Exec(t, tables)
	path := filepath.Join(t.TempDir(), "clients.yaml")
	if err := os.WriteFile(path, fmt.Appendf(nil, config, server.URL(), db.DSN), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster.StartNode(t, path, nil)
	return server, db
}

// Three programs write while the node flushes, and one of the programs is killed while it writes.
func TestTheTablesAreWhatRedisHas(t *testing.T) {
	t.Parallel()
	const writes, killAt = 300, 100
	each(t, func(t *testing.T, _ language, program []string) {
		server, db := flushed(t)
		counted := make(chan int)
		for worker := range 3 {
			kill := 0
			if worker == 0 {
				kill = killAt
			}
			cmd := exec.Command(program[0], append(program[1:], server.Addr(), "work", strconv.Itoa(worker), strconv.Itoa(writes))...)
			go func() { counted <- work(t, cmd, kill) }()
		}
		done := 0
		for range 3 {
			done += <-counted
		}
		if done < 2*writes+killAt {
			t.Fatalf("the programs have written %d times, want at least %d", done, 2*writes+killAt)
		}
		c := server.Conn()
		await(t, func() string { return waiting(t, c) })
		await(t, func() string {
			if got, want := users(t, db), hashes(t, c); !maps.Equal(got, want) {
				return fmt.Sprintf("table users has %v, Redis %v", got, want)
			}
			return ""
		})
		for _, query := range []string{"SELECT sum(hits) FROM pages", "SELECT sum(views) FROM articles"} {
			await(t, func() string {
				// The killed program may have written once more than it has reported.
				if got := db.Rows(t, query)[0][0]; got != strconv.Itoa(done) && got != strconv.Itoa(done+1) {
					return fmt.Sprintf("%s is %s, want %d, or one more", query, got, done)
				}
				return ""
			})
		}
	})
}

// work runs a program, and returns the number of lines that the program has printed. Unless killAt is 0, work kills the program after
// killAt lines.
func work(t *testing.T, cmd *exec.Cmd, killAt int) (lines int) {
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		return 0
	}
	for scan := bufio.NewScanner(out); scan.Scan(); lines++ {
		if lines == killAt && killAt > 0 {
			err = cmd.Process.Kill()
		}
	}
	if ended := cmd.Wait(); err != nil || (ended != nil) != (killAt > 0) {
		t.Errorf("%s: %v, %v", cmd, err, ended)
	}
	return lines
}

// waiting returns a text about a counter or index that is still in Redis, or "".
func waiting(t *testing.T, c redis.Conn) string {
	t.Helper()
	keys, err := redis.Strings(c.Do("KEYS", "*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys {
		if strings.HasPrefix(key, "hits:") || strings.HasPrefix(key, "views:") || strings.Contains(key, "changed:") && !strings.HasSuffix(key, ":meta") {
			return fmt.Sprintf("Redis still has %s of %q", key, keys)
		}
	}
	return ""
}

func users(t *testing.T, db *testsupport.Database) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, row := range db.Rows(t, "SELECT id, n FROM users") {
		all[row[0]] = row[1]
	}
	return all
}

func hashes(t *testing.T, c redis.Conn) map[string]string {
	t.Helper()
	keys, err := redis.Strings(c.Do("KEYS", "user:*"))
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, key := range keys {
		if all[strings.TrimPrefix(key, "user:")], err = redis.String(c.Do("HGET", key, "n")); err != nil {
			t.Fatal(err)
		}
	}
	if len(all) < 100 {
		t.Fatalf("Redis has %d hashes only", len(all))
	}
	return all
}

// await waits until complaint returns "".
func await(t *testing.T, complaint func() string) {
	t.Helper()
	testsupport.AwaitNoError(t, "nothing is to be complained about", func() error {
		if text := complaint(); text != "" {
			return errors.New(text)
		}
		return nil
	})
}

// The test checks that with the helper's settings no client sends a count again after a lost reply.
func TestALostReplyIsAnErrorAndCountsOnce(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, l language, program []string) {
		server := testsupport.StartRedis(t)
		proxy := server.Proxy()
		for _, c := range []struct{ mode, request, counted string }{
			{"lost", l.exec, "GET hits:lost"},
			{"lost-field", "views:0", "HGET views:0 lost"},
		} {
			lost := proxy.LoseReply(c.request)
			if got := ask(t, program, proxy.Addr(), c.mode); !strings.HasPrefix(got, "error ") {
				t.Errorf("%s: the program says %q", c.mode, got)
			}
			select {
			case <-lost:
			default:
				t.Errorf("%s: no reply was lost", c.mode)
			}
			words := strings.Fields(c.counted)
			if got, err := redis.Int(server.Conn().Do(words[0], redis.Args{}.AddFlat(words[1:])...)); err != nil || got != 1 {
				t.Errorf("%s: counted %d times, %v", c.mode, got, err)
			}
		}
	})
}

// If Redis refuses a mark, the call must return an error, although EXEC itself returns no error.
func TestARefusedMarkIsAnError(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ language, program []string) {
		server := testsupport.StartRedis(t)
		do(t, server.Conn(), "SET", "changed:user", "not a set")
		if got := ask(t, program, server.Addr(), "refused"); !strings.HasPrefix(got, "error ") || !strings.Contains(got, "WRONGTYPE") {
			t.Errorf("of a mark that is refused the program says %q", got)
		}
		do(t, server.Conn(), "DEL", "changed:user")
		do(t, server.Conn(), "CONFIG", "SET", "maxmemory", "1")
		if got := ask(t, program, server.Addr(), "lost"); !strings.HasPrefix(got, "error ") {
			t.Errorf("of a transaction that is refused the program says %q", got)
		}
	})
}

// A field without a value must be refused, because no text means that there is no value.
func TestAFieldWithoutAValueIsRefused(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, _ language, program []string) {
		server := testsupport.StartRedis(t)
		if got := ask(t, program, server.Addr(), "null"); !strings.HasPrefix(got, "error ") {
			t.Errorf("the program says %q", got)
		}
		if n, err := redis.Int(server.Conn().Do("DBSIZE")); err != nil || n != 0 {
			t.Errorf("Redis has %d keys, %v", n, err)
		}
	})
}

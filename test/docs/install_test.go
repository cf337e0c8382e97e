package docs

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// installation is a real one, of two nodes, db1 and db2, with the jobs that pages speak
// of; db1 is the host that commands are given on.
type installation struct {
	dir, baton string
	db         *testsupport.Database
	env        []string
	replace    *strings.Replacer
	had        map[string]bool // commands that a page has had
	ran        map[string]int  // commands by what was done with them
	notRun     map[string]int  // by their reason
}

const installedJobs = `
  - {name: report, schedule: "30 2 * * *", command: [/bin/echo, done]}
  - {name: encode, schedule: "*/5 * * * *", command: [/bin/echo, done]}
  - {name: nightly, schedule: "30 2 * * *", command: [/bin/echo, done]}
  - {name: hello, schedule: "30 2 * * *", command: [/bin/echo, done]}
  - name: page-views
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: "views:[0-15]"}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: {from: $value, op: add}}
  - name: views
    schedule: "@every 1s"
    flush:
      from: {type: counters, key: "more:views"}
      to: {database: main, table: articles, key: [id]}
      columns: {id: $field, views: {from: $value, op: add}}
  - name: users
    schedule: "@every 1s"
    flush:
      from: {type: hashes, key: "user:<id>", changed: "changed:user"}
      to: {database: main, table: users, key: [id]}
  - name: orders
    schedule: "@every 1s"
    flush:
      from: {type: list, key: "orders"}
      to: {database: main, table: orders, mode: insert, dedupe_key: [id]}
`

func install(t *testing.T) *installation {
	t.Helper()
	redis, db := testsupport.StartRedis(t, testsupport.RedisAOF()), testsupport.SQLite(t)
	db.Exec(t, "CREATE TABLE articles (id integer PRIMARY KEY, views bigint NOT NULL DEFAULT 0);"+
		"CREATE TABLE users (id integer PRIMARY KEY, name varchar(40), email varchar(80));"+
		"CREATE TABLE orders (id integer PRIMARY KEY, item varchar(40) NOT NULL)")
	in := &installation{dir: t.TempDir(), baton: cluster.Build(t), db: db, had: map[string]bool{}, ran: map[string]int{}, notRun: map[string]int{}}
	host, port, _ := strings.Cut(redis.Addr(), ":")
	if err := os.Mkdir(filepath.Join(in.dir, "etc"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(in.dir, "etc/token"), "a-token-for-the-tests-of-pages\n")
	write(t, filepath.Join(in.dir, "etc/main.dsn"), "postgres://app@127.0.0.1/app\n") // which the example names
	db1 := in.startNode(t, "db1", redis.URL())
	in.startNode(t, "db2", redis.URL())
	in.replace = strings.NewReplacer("/etc/baton", in.dir+"/etc", "/run/baton", in.dir+"/db1", "/var/lib/baton", in.dir+"/state",
		"127.0.0.1:6379", redis.Addr(), "127.0.0.1:9747", db1.Addr(), "redis-cli", "redis-cli -h "+host+" -p "+port)
	in.env = append(os.Environ(), "PATH="+filepath.Dir(in.baton)+":"+os.Getenv("PATH"), "RUNTIME_DIRECTORY="+in.dir+"/db1",
		"BATON_CONFIG="+in.dir+"/etc/baton.yaml", "HOME="+in.dir, "NO_COLOR=1")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		out, err := in.bash("baton explain db2 && baton status && baton leader")
		if err == nil && strings.Contains(out, "db2 ") {
			if out, err := in.bash("baton job run report --watch"); err != nil { // so that there is something to look at
				t.Fatalf("%v: %s", err, out)
			}
			return in
		}
		if time.Now().After(deadline) {
			t.Fatalf("no node leads: %s", out)
		}
	}
}

func (in *installation) startNode(t *testing.T, node, redis string) *cluster.Node {
	t.Helper()
	for _, dir := range []string{node, node + "-state"} {
		if err := os.Mkdir(filepath.Join(in.dir, dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(in.dir, node, "baton.yaml")
	if node == "db1" {
		path = filepath.Join(in.dir, "etc/baton.yaml")
	}
	write(t, path, fmt.Sprintf("node: {id: %s}\nredis: {url: %q}\nhttp: {listen: \"127.0.0.1:0\", token_file: %q}\ndatabases: {main: {driver: sqlite, dsn: %q}}\njobs:%s",
		node, redis, filepath.Join(in.dir, "etc/token"), in.db.DSN, installedJobs))
	n := cluster.StartNode(t, path, []string{"RUNTIME_DIRECTORY=" + filepath.Join(in.dir, node), "STATE_DIRECTORY=" + filepath.Join(in.dir, node+"-state")})
	n.ID = node
	return n
}

// bash runs lines on db1, for a while.
func (in *installation) bash(script string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", in.replace.Replace(script))
	cmd.Dir, cmd.Env, cmd.WaitDelay = in.dir, in.env, time.Second
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// localize has the example that was written name the files of the installation.
func (in *installation) localize(t *testing.T) {
	t.Helper()
	path := filepath.Join(in.dir, "baton.yaml")
	text, err := os.ReadFile(path)
	if err != nil {
		return // it went elsewhere
	}
	write(t, path, in.replace.Replace(string(text)))
}

func (in *installation) report(t *testing.T) {
	t.Helper()
	t.Logf("commands: %v", in.ran)
	for reason, n := range in.notRun {
		t.Logf("not run: %d, %s", n, reason)
	}
}

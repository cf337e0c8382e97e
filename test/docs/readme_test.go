package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/walk"
)

// mostWords is how long the part of README may be that comes before what is for later.
const mostWords = 900

func TestReadmeIsShort(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	first, _, ok := strings.Cut(string(text), "\n## More\n")
	if n := len(strings.Fields(first)); !ok || n > mostWords {
		t.Errorf("%d words before More, limit %d", n, mostWords)
	}
	if at := strings.Index(first, "](docs/demo.svg)"); at < 0 || at > 900 {
		t.Errorf("the picture is not in the first screen: at byte %d", at)
	}
}

// The picture is of a run that was clean, and beside which the naive program was not.
func TestReadmesPictureKeepsItsWord(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join(root, "docs/demo.svg"))
	if err != nil {
		t.Fatal(err)
	}
	if picture := string(text); !strings.Contains(picture, "baton: lost 0 · twice 0") || strings.Contains(picture, "failed its audit") ||
		strings.Contains(picture, ">lost 0 · twice 0<") {
		t.Error("the picture is not what README says of it: make picture")
	}
}

// laptop is a directory with a Redis of its own, on which README's example is pasted.
type laptop struct {
	dir     string
	replace *strings.Replacer
	pid     string // file with the daemon's process group
}

func newLaptop(t *testing.T, more ...string) *laptop {
	t.Helper()
	redis, page := testsupport.StartRedis(t), testsupport.FreeAddr(t)
	host, port, _ := strings.Cut(redis.Addr(), ":")
	l := &laptop{dir: t.TempDir()}
	l.pid = filepath.Join(l.dir, "pid")
	if err := os.Symlink(filepath.Dir(cluster.Build(t)), filepath.Join(l.dir, "bin")); err != nil {
		t.Fatal(err)
	}
	l.replace = strings.NewReplacer(append([]string{
		"redis-cli", "redis-cli -h " + host + " -p " + port, "127.0.0.1:6379", redis.Addr(), "127.0.0.1:9747", page,
		"make build", "test -x bin/baton", // the test has built it
		"baton run", "export RUNTIME_DIRECTORY=$PWD STATE_DIRECTORY=$PWD BATON_HTTP=" + page + "; setsid baton run >log 2>&1 & echo $! >" + l.pid,
	}, more...)...)
	t.Cleanup(func() {
		if out, err := exec.Command("bash", "-c", "kill -- $(cat "+l.pid+") && tail --pid=$(cat "+l.pid+") -f /dev/null").CombinedOutput(); err != nil {
			t.Errorf("stop the daemon: %v\n%s", err, out)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(l.dir, "log"))
			fmt.Fprintf(t.Output(), "it has logged:\n%s\n", log)
		}
	})
	return l
}

// Exec runs lines of bash, as in one terminal after the other.
func (l *laptop) Exec(script string) (string, error) {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", "export PATH=\"$PWD/bin:$PATH\" BATON_CONFIG=baton.yaml\n"+l.replace.Replace(script))
	cmd.Dir, cmd.Env = l.dir, append(os.Environ(), "BATON_NODE_ID=laptop", "NO_COLOR=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// Who pastes README's example, and nothing else, sees what it says: with the database that it names, and with
// a table in PostgreSQL that was there before.
func TestReadmesExampleToTheLetter(t *testing.T) {
	t.Parallel()
	for _, page := range []string{"README.md", "README.zh-CN.md"} {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			walk.Follow(t, filepath.Join(root, page), map[string]walk.Host{"laptop": newLaptop(t)})
		})
	}
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		db := testsupport.Postgres(t)
		db.Exec(t, "CREATE TABLE users (id bigint PRIMARY KEY, name varchar(100), email varchar(200))")
		db.Exec(t, "CREATE TABLE visits (page varchar(100) PRIMARY KEY, visits bigint NOT NULL DEFAULT 0)")
		l := newLaptop(t, "main: {driver: sqlite, dsn: shop.db}", "main: {driver: postgres, dsn_file: main.dsn}", ", schema: create}", "}")
		write(t, filepath.Join(l.dir, "main.dsn"), db.DSN+"\n")
		walk.Follow(t, filepath.Join(root, "README.md"), map[string]walk.Host{"laptop": l})
		if rows := db.Rows(t, "SELECT id, name, email FROM users"); len(rows) != 1 || strings.Join(rows[0], " ") != "42 Ada ada@new.example.com" {
			t.Errorf("%v", rows)
		}
		if rows := db.Rows(t, "SELECT page, visits FROM visits"); len(rows) != 1 || rows[0][0] != "home" {
			t.Errorf("%v", rows)
		}
	})
}

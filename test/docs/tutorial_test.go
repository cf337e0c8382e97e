package docs

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
	"baton/internal/testsupport/walk"
)

// A newcomer who does what the tutorial says, and nothing else, sees what it says. The
// machines are directories here: testdata/host has what stands for sudo, apt-get and
// systemctl, and what else differs is in plainHost. make test-systemd does the same on
// hosts with systemd, without any of that.
func TestTutorialToTheLetter(t *testing.T) {
	t.Parallel()
	redis, db := testsupport.StartRedis(t), testsupport.Postgres(t)
	program := filepath.Dir(cluster.Build(t))
	hosts := map[string]walk.Host{}
	for _, name := range []string{"store", "one", "two"} {
		hosts[name] = newPlainHost(t, name, program, redis.Addr(), db.Addr())
	}
	walk.Follow(t, "../../docs/tutorial.md", hosts)
}

// plainHost is a directory that commands take for a machine.
type plainHost struct {
	dir     string
	env     []string
	replace *strings.Replacer
	restore *strings.Replacer
}

func newPlainHost(t *testing.T, name, program, redis, postgres string) *plainHost {
	t.Helper()
	dir := t.TempDir()
	for _, sub := range []string{"etc/baton", "etc/postgresql/15/main", "run", "state"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "etc/postgresql/15/main/pg_hba.conf"), "")
	shims, err := filepath.Abs("testdata/host")
	if err != nil {
		t.Fatal(err)
	}
	page := testsupport.FreeAddr(t)
	redisHost, redisPort, _ := strings.Cut(redis, ":")
	pgHost, pgPort, _ := strings.Cut(postgres, ":")
	h := &plainHost{
		dir: dir,
		env: append(os.Environ(), "PATH="+shims+":"+program+":"+os.Getenv("PATH"), "HOST_DIR="+dir,
			"RUNTIME_DIRECTORY="+dir+"/run", "STATE_DIRECTORY="+dir+"/state",
			"BATON_CONFIG="+dir+"/etc/baton/baton.yaml", "BATON_NODE_ID="+name, "BATON_HTTP="+page,
			"PGHOST="+pgHost, "PGPORT="+pgPort),
		replace: strings.NewReplacer(
			"/etc/", dir+"/etc/",
			"redis-cli", fmt.Sprintf("redis-cli -h %s -p %s", redisHost, redisPort),
			"store:6379", redis, "store:5432", postgres, "127.0.0.1:9747", page,
			// Nothing here listens to other hosts, and the server has no file of its own.
			"'* -::*'", redisHost, "CONFIG REWRITE", "PING", "listen_addresses = '*'", "listen_addresses = '127.0.0.1'"),
		restore: strings.NewReplacer(dir, "", "PONG", "OK"),
	}
	t.Cleanup(func() {
		if out, err := h.Exec("systemctl stop baton"); err != nil {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
		if t.Failed() {
			log, _ := os.ReadFile(filepath.Join(dir, "log"))
			fmt.Fprintf(t.Output(), "%s has logged:\n%s\n", name, log)
		}
	})
	return h
}

// Exec runs lines of bash.
func (h *plainHost) Exec(script string) (string, error) {
	cmd := exec.Command("bash", "-euo", "pipefail", "-c", h.replace.Replace(script))
	cmd.Dir, cmd.Env = h.dir, h.env
	out, err := cmd.CombinedOutput()
	return h.restore.Replace(string(out)), err
}

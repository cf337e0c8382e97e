package secrets

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"baton/internal/testsupport"
)

// badDSNs are DSNs whose password, A and B with a special character between, ends up at the place of something else. baton takes the
// first ones, and dials; it refuses the others.
var (
	takenDSNs = map[string][]string{
		"postgres": {"postgres://app:A%40B@127.0.0.1:1/db", "postgres://app:A#B@127.0.0.1:1/db", "postgres://app:A:B@127.0.0.1:1/db",
			"postgres://app:A,B@127.0.0.1:1/db", `postgres://app:A\B@127.0.0.1:1/db`, "postgres://127.0.0.1:1/db?user=app&password=A@B",
			"host=127.0.0.1 port=1 user=app password='A B'", `host=127.0.0.1 port=1 user=app password='A\'B' dbname=db`,
			"host = 127.0.0.1 port = 1 password = A@B user=app"},
		"mysql": {"app:A@B@tcp(127.0.0.1:1)/db", "app:A@tcp(B)@tcp(127.0.0.1:1)/db", "app:A/B@tcp(127.0.0.1:1)/db", "app:A:B@tcp(127.0.0.1:1)/db",
			"app:A?B=@tcp(127.0.0.1:1)/db", "app:A@B@unix(/none)/db"},
	}
	refusedDSNs = map[string][]string{
		"postgres": {"postgres://app:A@B@127.0.0.1:1/db", "postgres://app:A/B@127.0.0.1:1/db", "postgres://app:A B@127.0.0.1:1/db",
			"postgres://app:A%B@127.0.0.1:1/db", "postgres://app:A@B@h1,h2/db", "postgres://A@B:app@127.0.0.1:1/db",
			"postgres://app:A@B@127.0.0.1:port/db", "postgres://app:pw@127.0.0.1:1/db?sslmode=A&B=x", "host=127.0.0.1 user=app password=A B",
			"host=127.0.0.1 user=app password='A'B' dbname=db", `host=127.0.0.1 user=app password="A B" dbname=db`,
			"host=127.0.0.1 password=A@B port=A user=app", "app:A@B@127.0.0.1/db", "A@B"},
		"mysql": {"app:A@B@127.0.0.1:1/db", "app:A@B@127.0.0.1/db", "mysql://app:A@B@127.0.0.1/db", "app:A@B@tcp(127.0.0.1:1/db",
			"app:A@B@tcp(127.0.0.1:1)", "app:pw@tcp(127.0.0.1:1)/db?timeout=A&B=%zz", "user=app;password=A@B;server=127.0.0.1"},
	}
)

// ofPieces plants two pieces of a password in a DSN.
func (v *vault) ofPieces(dsn, where string) string {
	return strings.NewReplacer("A", v.plant("A of "+where), "B", v.plant("B of "+where)).Replace(dsn)
}

// A node whose databases have bad DSNs, from the start or since a file was replaced, shows no piece of a password.
func TestANodeShowsNoPieceOfAPasswordInABadDSN(t *testing.T) {
	v := &vault{t: t, values: map[string]string{}}
	w := &world{vault: v, place: &place{t: t, dir: t.TempDir()}, https: trusting()}
	w.redis = testsupport.StartRedis(t)
	cert, key, _ := certificate(t)
	w.file("cert.pem", cert)
	w.file("key.pem", key)
	databases, jobs := "databases:\n", "jobs:\n"
	add := func(driver, dsn string) (file string) {
		name := fmt.Sprintf("d%d", len(w.jobs))
		file = name + ".dsn"
		databases += fmt.Sprintf("  %s: {driver: %s, dsn_file: %q}\n", name, driver, w.file(file, dsn+"\n"))
		jobs += fmt.Sprintf("  - {name: %[1]s, schedule: \"@every 1s\", "+
			"flush: {from: {type: list, key: %[1]s}, to: {database: %[1]s, table: t}}}\n", name)
		w.jobs = append(w.jobs, name)
		if _, err := w.redis.Conn().Do("RPUSH", name, "{}"); err != nil {
			t.Fatal(err)
		}
		return file
	}
	late := map[string]string{} // what files hold later
	for driver, fine := range map[string]string{"postgres": "postgres://app@127.0.0.1:1/db", "mysql": "app@tcp(127.0.0.1:1)/db"} {
		for _, dsn := range takenDSNs[driver] {
			add(driver, w.ofPieces(dsn, dsn))
		}
		for _, dsn := range refusedDSNs[driver] {
			late[add(driver, fine)] = w.ofPieces(dsn, dsn)
		}
	}
	config := w.file("baton.yaml", fmt.Sprintf("node: {id: one}\nredis: {url: %q}\nelection: {ttl: 3s}\n"+
		"http: {listen: \"127.0.0.1:0\", tls: {cert_file: %q, key_file: %q}}\n", w.redis.URL(), filepath.Join(w.dir, "cert.pem"),
		filepath.Join(w.dir, "key.pem"))+databases+jobs)
	node := w.start("baton", "json")
	failed := func() bool {
		for _, job := range w.jobs {
			if _, history := w.get(node.Addr(), "/api/v1/jobs/"+job+"/history?n=5", ""); !strings.Contains(history, `"failed"`) {
				return false
			}
		}
		return true
	}
	w.await("a failed run of every job", failed, node)
	w.tells(node.Addr(), config)
	for file, dsn := range late {
		w.file(file, dsn+"\n")
	}
	for _, arguments := range []string{"reload", "config check", "stepdown"} {
		w.search("baton "+arguments, w.says(append(strings.Fields(arguments), "--config", config)...))
	}
	terms := func() bool { return strings.Count(node.Log(), `"leading"`) > 1 }
	w.await("another term", terms, node)
	w.tells(node.Addr(), config)
	w.search("Redis", w.redisHas())
	w.search("the log", node.Log())
	w.search("baton run", w.says("run", "--config", config))
}

// tells asks a node and the commands for all that they show of jobs and databases.
func (w *world) tells(address, config string) {
	w.place.t.Helper()
	if n := w.crawl(address, ""); n < 9+len(w.jobs) {
		w.place.t.Errorf("only %d pages were found", n)
	}
	if n := w.askAll(address, "", "none"); n < len(w.jobs) {
		w.place.t.Errorf("only %d addresses of the API were found", n)
	}
	for _, arguments := range []string{"config show", "doctor", "status", "explain", "job list", "dead list", "job show d0", "job history d0",
		"job preview d0", "job show d20"} {
		w.search("baton "+arguments, w.says(append(strings.Fields(arguments), "--config", config)...))
	}
}

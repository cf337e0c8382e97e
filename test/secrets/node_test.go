package secrets

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"html"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/cluster"
)

// vault hands out secrets, each of its own, and looks for them.
type vault struct {
	t      *testing.T
	values map[string]string // by where they were planted
}

func (v *vault) plant(where string) string {
	v.t.Helper()
	b := make([]byte, 9)
	if _, err := rand.Read(b); err != nil {
		v.t.Fatal(err)
	}
	v.values[where] = "zq" + hex.EncodeToString(b)
	return v.values[where]
}

// search fails for each secret that is in a text.
func (v *vault) search(said, text string) {
	v.t.Helper()
	for where, value := range v.values {
		if at := strings.Index(text, value); at >= 0 {
			v.t.Errorf("%s tells the secret of %s: …%q…", said, where, text[max(0, at-200):min(len(text), at+len(value)+60)])
		}
	}
}

func certificate(t *testing.T) (cert, key, marker string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	key = string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw}))
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), key, strings.Split(key, "\n")[1]
}

// world is a node among real servers, with a secret wherever one may be.
type world struct {
	*vault
	*place
	redis *testsupport.Redis
	db    *testsupport.Database
	token string
	jobs  []string
	https *http.Client
}

// trusting is a client for a node whose certificate is its own.
func trusting() *http.Client {
	return &http.Client{Timeout: soon, Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

func newWorld(t *testing.T) *world {
	v := &vault{t: t, values: map[string]string{}}
	w := &world{vault: v, place: &place{t: t, dir: t.TempDir()}}
	w.redis = testsupport.StartRedis(t, testsupport.RedisAOF(), testsupport.RedisPassword(v.plant("redis.password")))
	w.db = testsupport.Postgres(t)
	maria := testsupport.MariaDB(t)
	w.db.Exec(t, "CREATE TABLE users (id bigint PRIMARY KEY, name text)")
	cert, key, marker := certificate(t)
	v.values["http.tls.key_file"] = marker
	w.token = v.plant("http.token_file")
	w.https, w.jobs = trusting(), []string{"printer", "fine", "to-closed", "to-wrong", "users"}
	w.env = []string{
		"PLANTED_REDIS=" + v.values["redis.password"], "PLANTED_DSN=postgres://app:" + v.plant("the DSN from the environment") + "@127.0.0.1:1/none?sslmode=disable",
		"PLANTED_TOKEN=" + v.plant("the daemon's own environment"), "CREDENTIALS_DIRECTORY=" + filepath.Join(w.dir, "credentials"),
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://u:" + v.plant("the endpoint of traces") + "@127.0.0.1:1/" + v.plant("the path of traces"),
		"OTEL_EXPORTER_OTLP_HEADERS=api-key=" + v.plant("the headers of traces"), "OTEL_BSP_SCHEDULE_DELAY=100",
	}
	pg := strings.Replace(w.db.DSN, "app@", "app:"+v.plant("dsn_file in the credentials directory")+"@", 1)
	if pg == w.db.DSN {
		t.Fatalf("no password could be put into %s", pg)
	}
	w.file("credentials/pg.dsn", pg+"\n")
	w.file("cert.pem", cert)
	w.file("key.pem", key)
	w.file("token", w.token+"\n")
	w.file("hook-token", v.plant("webhook.token_file")+"\n")
	w.file("hook-url", "http://127.0.0.1:1/"+v.plant("webhook.url_file")+"\n")
	w.file("switch-url", "http://127.0.0.1:1/"+v.plant("dead_mans_switch.url_file")+"?x="+v.plant("the query of url_file")+"\n")
	w.file("env", "ENV_FILE_ONE="+v.plant("env_file")+"\nENV_FILE_URL=amqp://u:"+v.plant("a URL in env_file")+"@h/\n")
	w.file("secret", v.plant("secrets")+"\n")
	half := v.values["secrets"][:7]
	w.file("baton.yaml", `
node: {id: NODE}
redis: {url: "`+w.redis.URL()+`", password: "${PLANTED_REDIS}"}
election: {ttl: 3s}
http: {listen: "127.0.0.1:0", token_file: token, tls: {cert_file: cert.pem, key_file: key.pem}}
databases:
  pg: {driver: postgres, dsn_file: "${CREDENTIALS_DIRECTORY}/pg.dsn"}
  closed: {driver: postgres, dsn: "${PLANTED_DSN}"}
  wrong: {driver: mysql, dsn: "app:`+v.plant("dsn with a wrong password")+`@tcp(`+maria.Addr()+`)/x"}
notify:
  - {name: hook, webhook: {url: "http://127.0.0.1:1/`+v.plant("webhook.url")+`", token_file: hook-token}}
  - {name: hook-file, webhook: {url_file: hook-url}}
  - {name: talks, command: [/bin/sh, -c, "cat; env; exit 3"]}
jobs:
  - name: printer
    schedule: "@every 2s"
    command: "env; env >&2; printf `+half+`; sleep 0.3; echo `+"`tail -c +8 '"+filepath.Join(w.dir, "secret")+"'`"+`; sleep 0.5; exit 4"
    shell: true
    env: {OWN_PASSWORD: "`+v.plant("env of a job")+`"}
    env_file: env
    secrets: {PLANTED_SECRET: secret}
    dead_mans_switch: {url_file: switch-url}
  - name: fine
    schedule: "@every 2s"
    command: "env"
    shell: true
    secrets: {PLANTED_SECRET: secret}
    dead_mans_switch: {url_file: switch-url, token_file: hook-token}
  - name: users
    schedule: "@every 1s"
    flush: {from: {type: hashes, key: "user:<id>", changed: "changed:user"}, to: {database: pg, table: users, key: [id]}}
  - name: to-closed
    schedule: "@every 1s"
    flush: {from: {type: list, key: l}, to: {database: closed, table: t}}
  - name: to-wrong
    schedule: "@every 1s"
    flush: {from: {type: list, key: m}, to: {database: wrong, table: t}}
`)
	text, err := os.ReadFile(filepath.Join(w.dir, "baton.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	absolute := regexp.MustCompile(`(_file: |: )(token|cert\.pem|key\.pem|hook-token|hook-url|switch-url|env|secret)([,}\n])`).ReplaceAllString(string(text), "${1}"+w.dir+"/${2}${3}")
	w.file("one.yaml", strings.Replace(absolute, "NODE", "one", 1))
	w.file("two.yaml", strings.Replace(absolute, "NODE", "two", 1))
	return w
}

// start starts a node.
func (w *world) start(name, format string) *cluster.Node {
	w.place.t.Helper()
	n := cluster.StartNode(w.place.t, filepath.Join(w.dir, name+".yaml"), append(w.env, "HOME="+w.dir), "--log-level", "debug", "--log-format", format)
	w.place.t.Cleanup(n.Kill) // its commands go on
	return n
}

func (w *world) await(what string, met func() bool, n *cluster.Node) {
	w.place.t.Helper()
	for deadline := time.Now().Add(soon); !met(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			w.place.t.Fatalf("waited too long for %s:\n%s", what, n.Log())
		}
	}
}

// get asks for a path, as somebody or as nobody.
func (w *world) get(address, path, token string) (int, string) {
	r, err := http.NewRequestWithContext(w.place.t.Context(), http.MethodGet, "https://"+address+path, nil)
	if err != nil {
		return 0, ""
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := w.https.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = answer.Body.Close() }()
	body, _ := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	return answer.StatusCode, fmt.Sprint(answer.Header) + string(body)
}

// links are relative: a proxy may serve the page below a path.
var links = regexp.MustCompile(`href="([^"#]+)["#]`)

// crawl follows every link of the page.
func (w *world) crawl(address, token string) int {
	seen, queue := map[string]bool{"/": true}, []string{"/", "/timeline", "/dead-letters", "/sign-in", "/metrics", "/-/healthy", "/-/ready", "/-/leader", "/none"}
	for n := 0; n < len(queue) && n < 150; n++ {
		path, _, _ := strings.Cut(queue[n], "?")
		_, body := w.get(address, queue[n], token)
		w.search("page "+queue[n], body)
		for _, m := range links.FindAllStringSubmatch(body, -1) {
			link, err := (&url.URL{Path: path}).Parse(html.UnescapeString(m[1]))
			if err != nil || link.Host != "" || seen[link.RequestURI()] {
				continue
			}
			seen[link.RequestURI()] = true
			queue = append(queue, link.RequestURI())
		}
	}
	return len(queue)
}

// askAll asks every address of the API that only reads.
func (w *world) askAll(address, token, run string) int {
	_, text := w.get(address, "/api/v1/openapi.json", token)
	var document struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	if at := strings.Index(text, "{"); at < 0 || json.Unmarshal([]byte(text[at:]), &document) != nil {
		w.place.t.Errorf("no OpenAPI document: %.200s", text)
	}
	asked := 0
	for path, methods := range document.Paths {
		if methods["get"] == nil || strings.HasSuffix(path, "/stream") {
			continue
		}
		if !strings.HasPrefix(path, "/api/v1") {
			path = "/api/v1" + path
		}
		for _, job := range w.jobs {
			asks := strings.NewReplacer("{job}", job, "{run}", run, "{node}", "one", "{id}", "none").Replace(path)
			_, body := w.get(address, asks, token)
			w.search("API "+asks, body)
			asked++
			if asks == path {
				break
			}
		}
	}
	return asked
}

// processes are the command lines of a process and of all that it has started.
func processes(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	all := string(text) + "\n"
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, task := range tasks {
		children, _ := os.ReadFile(task)
		for child := range strings.FieldsSeq(string(children)) {
			if n, err := strconv.Atoi(child); err == nil {
				all += processes(n)
			}
		}
	}
	return all
}

// redisHas is every key that there is, with all that it holds.
func (w *world) redisHas() string {
	conn := w.redis.Conn()
	keys, err := conn.Do("KEYS", "*")
	if err != nil {
		w.place.t.Fatal(err)
	}
	var all bytes.Buffer
	for _, k := range keys.([]any) { //nolint:forcetypeassert // KEYS answers a list
		key := string(k.([]byte)) //nolint:forcetypeassert // of texts
		kind, _ := conn.Do("TYPE", key)
		ask := map[any][]any{"string": {"GET", key}, "hash": {"HGETALL", key}, "list": {"LRANGE", key, 0, -1}, "set": {"SMEMBERS", key}, "zset": {"ZRANGE", key, 0, -1}, "stream": {"XRANGE", key, "-", "+"}}[kind]
		if ask == nil {
			w.place.t.Fatalf("%s is a %v", key, kind)
		}
		value, err := conn.Do(ask[0].(string), ask[1:]...) //nolint:forcetypeassert // it stands above
		if err != nil {
			w.place.t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s: ", key)
		spell(&all, value)
	}
	return all.String()
}

func spell(out *bytes.Buffer, value any) {
	switch v := value.(type) {
	case []byte:
		out.Write(v)
		out.WriteByte('\n')
	case []any:
		for _, one := range v {
			spell(out, one)
		}
	default:
		fmt.Fprintln(out, v)
	}
}

// A node with a secret wherever one may be, whose commands print their environment, whose
// databases and hooks refuse it, is asked for all that it tells.
func TestANodeTellsNoSecret(t *testing.T) {
	w := newWorld(t)
	conn := w.redis.Conn()
	for _, c := range [][]any{{"HSET", "user:1", "name", "a"}, {"HSET", "user:x", "name", "b"}, {"SADD", "changed:user", "1", "x"}, {"RPUSH", "l", "{}"}, {"RPUSH", "m", "{}"}} {
		if _, err := conn.Do(c[0].(string), c[1:]...); err != nil { //nolint:forcetypeassert // it stands above
			t.Fatal(err)
		}
	}
	one, two := w.start("one", "json"), w.start("two", "text")

	var lines []string // of all processes, while commands run
	w.await("runs of all jobs", func() bool {
		lines = append(lines, processes(one.Pid()))
		said := one.Log()
		return strings.Count(said, `"printer"`) > 3 && strings.Contains(said, "to-closed") && strings.Contains(said, "to-wrong") && strings.Contains(said, "hook")
	}, one)
	var runs struct {
		Runs []struct {
			ID string `json:"id"`
		} `json:"runs"`
	}
	history := ""
	w.await("a run of the printer that has ended", func() bool {
		lines = append(lines, processes(one.Pid()))
		_, history = w.get(one.Addr(), "/api/v1/jobs/printer/history?n=5", w.token)
		return strings.Contains(history, `"failed"`)
	}, one)
	if at := strings.Index(history, "{"); at >= 0 {
		_ = json.Unmarshal([]byte(history[at:]), &runs) // without a run the output of none is asked for
	}
	run := "none"
	if m := regexp.MustCompile(`"id": ?"([0-9a-f-]{36})"`).FindStringSubmatch(history); m != nil {
		run = m[1]
	}

	w.await("the environment that the printer prints", func() bool { // the latest run may just begin
		commands := w.says("job", "logs", "printer", "--config", "one.yaml")
		w.search("baton job logs", commands)
		return strings.Contains(commands, "PLANTED_SECRET=***") && strings.Contains(commands, "ENV_FILE_ONE=***") && strings.Contains(commands, "OWN_PASSWORD=***")
	}, one)
	if !strings.Contains(strings.Join(lines, ""), "env") {
		t.Errorf("no command was seen to run: %q", lines)
	}
	w.search("the command lines", strings.Join(slices.Compact(lines), "\n"))
	for _, at := range []string{one.Addr(), two.Addr()} {
		for _, token := range []string{"", w.token} {
			if n := w.crawl(at, token); n < 9+len(w.jobs) {
				t.Errorf("only %d pages were found", n)
			}
			if n := w.askAll(at, token, run); n < 10 {
				t.Errorf("only %d addresses of the API were found", n)
			}
		}
	}
	for _, arguments := range []string{"config show", "config show -o json", "config show -o yaml", "config check", "doctor", "doctor -o json", "status", "status -o json", "explain", "leader",
		"job list", "job list -o json", "job show printer", "job show printer -o json", "job show to-wrong", "job history printer", "job next", "dead list", "dead list --database pg", "lock list", "job preview users"} {
		w.search("baton "+arguments, w.says(append(strings.Fields(arguments), "--config", "one.yaml")...))
	}
	w.search("redis", w.redisHas())
	for _, table := range w.db.Rows(t, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'") {
		w.search("table "+table[0], fmt.Sprint(w.db.Rows(t, "SELECT * FROM "+table[0])))
	}
	// A dump of all goroutines, as of a panic.
	one.Signal(syscall.SIGQUIT)
	one.Wait(soon)
	if !strings.Contains(one.Log(), "goroutine 1 ") {
		t.Error("there is no dump")
	}
	w.search("the log in JSON, and the dump", one.Log())
	w.search("the log", two.Log())
}

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"baton/cmd/baton/internal/cmdline"
)

// planted is the secret in the configurations below. test/secrets uses secrets in the files that real processes read.
const planted = "pLanted-5ecret-9f31"

// says runs a command until it ends, but for at most one minute. It returns all output, and reports whether the command has succeeded.
func (c *cli) says(args ...string) (string, bool) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(c.t.Context(), time.Minute)
	defer cancel()
	var said bytes.Buffer
	code := run(ctx, cmdline.Env{
		Args: args, Stdin: strings.NewReader(""), Stdout: &said, Stderr: &said,
		Getenv: func(name string) (string, bool) { v, ok := c.env[name]; return v, ok },
	})
	return said.String(), code == cmdline.ExitOK
}

// listenToStandardError stores the text that libraries write directly to standard error until the test ends, and then looks for secrets in
// it. A crash is still printed.
func listenToStandardError(t *testing.T) {
	t.Helper()
	heard, err := os.Create(filepath.Join(t.TempDir(), "stderr"))
	if err != nil {
		t.Fatal(err)
	}
	before, err := unix.FcntlInt(2, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		t.Fatal(err)
	}
	terminal := os.NewFile(uintptr(before), "stderr")
	if err := debug.SetCrashOutput(terminal, debug.CrashOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := unix.Dup3(int(heard.Fd()), 2, 0); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := unix.Dup3(before, 2, 0); err != nil {
			t.Error(err)
		}
		_ = debug.SetCrashOutput(nil, debug.CrashOptions{}) // a crash is written to standard error anyway
		_, _ = terminal.Close(), heard.Close()
		text, err := os.ReadFile(heard.Name())
		if err != nil {
			t.Error(err)
		}
		if strings.Contains(string(text), planted[:9]) {
			t.Errorf("a library repeats a secret:\n%s", text)
		}
	})
}

// TestNoComplaintRepeatsASecret checks that an error about a secret value never contains the value.
func TestNoComplaintRepeatsASecret(t *testing.T) {
	listenToStandardError(t)
	c := newCLI(t)
	files := map[string]string{
		"two-lines": planted + "\nmore\n", "short": planted[:9] + "\n", "env": planted + "\n", "env-quote": "TOKEN=\"" + planted + "\n",
		"dsn-bad": "postgres://u:" + planted + "@127.0.0.1:port/db\n", "dsn-closed": "u:" + planted + "@tcp(127.0.0.1:1)/db\n",
		"url-bad": "http://127.0.0.1:port/" + planted + "\n", "key.pem": "-----BEGIN PRIVATE KEY-----\n" + planted + "\n-----END PRIVATE KEY-----\n",
	}
	for name, text := range files {
		c.file(name, text)
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	closed := "redis: {url: \"redis://127.0.0.1:1\"}\n"
	job := func(more string) string {
		return closed + "jobs:\n  - name: j\n    schedule: \"@hourly\"\n    command: [\"true\"]\n" + more
	}
	database := func(driver, dsn string) string {
		return closed + fmt.Sprintf("databases: {main: {driver: %s, dsn: %q}}\njobs:\n  - name: j\n    schedule: \"@hourly\"\n    flush: {from: {type: list, key: l}, to: {database: main, table: t}}\n", driver, dsn)
	}
	cases := map[string]string{
		"url port":                 "redis: {url: \"redis://:" + planted + "@127.0.0.1:port/0\"}",
		"url brackets":             "redis: {url: \"redis://u:" + planted + "@[::1\"}",
		"url at, slash":            "redis: {url: \"redis://:x@y/" + planted + "@127.0.0.1:1/0\"}",
		"url at, query":            "redis: {url: \"redis://:x@y?" + planted + "@127.0.0.1:1/0\"}",
		"url at, fragment":         "redis: {url: \"redis://:x@y#" + planted + "@127.0.0.1:1/0\"}",
		"url at, host":             "redis: {url: \"redis://:x@" + planted + "!@127.0.0.1:1/0\"}",
		"url host":                 "redis: {url: \"redis://:x@y!" + planted + ":1/0\"}",
		"quorum at, slash":         "redis: {quorum: [\"redis://:x@y/" + planted + "@127.0.0.1:1\"]}",
		"url scheme":               "redis: {url: \"http://:" + planted + "@127.0.0.1\"}",
		"url escape":               "redis: {url: \"redis://:" + planted + "%zz@127.0.0.1\"}",
		"url database":             "redis: {url: \"redis://:" + planted + "@127.0.0.1:1/" + planted + "\"}",
		"url without scheme":       "redis: {url: \"u:" + planted + "@127.0.0.1:1\"}",
		"url with blanks":          "redis: {url: \"redis://:" + planted + " x@127.0.0.1:1\"}",
		"url with a control":       "redis: {url: \"redis://:" + planted + "\\u0001@127.0.0.1:1\"}",
		"url closed":               "redis: {url: \"redis://u:" + planted + "@127.0.0.1:1\"}",
		"url and password":         "redis: {url: \"redis://u:" + planted + "@127.0.0.1:1\", password: " + planted + "}",
		"url twice":                "redis:\n  url: redis://:" + planted + "@h\n  url: redis://:" + planted + "@g\n",
		"password of another kind": "redis: {password: [" + planted + "]}",
		"password as a map":        "redis: {password: {x: " + planted + "}}",
		"password misspelled":      "redis: {pasword: " + planted + "}",
		"password and file":        "redis: {password: " + planted + ", password_file: two-lines}",
		"password file":            "redis: {password_file: two-lines}",
		"sentinel":                 "redis: {sentinel: {master: m, addresses: [\"127.0.0.1:1\"], password: " + planted + "}}",
		"sentinel address":         "redis: {sentinel: {master: m, addresses: [\"u:" + planted + "@127.0.0.1:1\"]}}",
		"quorum":                   "redis: {quorum: [\"redis://:" + planted + "@127.0.0.1:port\", \"redis://:" + planted + "@127.0.0.1:1\", \"x:" + planted + "\"]}",
		"quorum closed":            "redis: {quorum: [\"redis://:" + planted + "@127.0.0.1:1\", \"redis://:" + planted + "@127.0.0.1:2\", \"redis://:" + planted + "@127.0.0.1:3\"]}",
		"sentinel host":            "redis: {sentinel: {master: m, addresses: [\"x!" + planted + ":1\"]}}",
		"cluster":                  "redis: {cluster: [\"redis://:" + planted + "@127.0.0.1:1\"]}",
		"broken off":               "redis:\n  password: \"" + planted + "\n  url: redis://h\n",
		"at sign":                  "redis:\n  password: @" + planted + "\n  url: redis://h\n",
		"star":                     "redis: {password: *" + planted + " x, url: redis://h}\n",
		"backtick":                 "redis:\n  password: `" + planted + "\n",
		"key in a list":            "jobs: [{command: [x, " + planted + ": @" + planted + "]}]\n",
		"tabs":                     "redis:\n  password: " + planted + "\n\turl: redis://h\n",
		"colon":                    "redis:\n  password: " + planted + ": more: " + planted + "\n",
		"list for a map":           "redis:\n  - password: " + planted + "\n",
		"anchor":                   "redis: {password: *" + planted + "}\n",
		"postgres port":            database("postgres", "postgres://u:"+planted+"@127.0.0.1:port/db"),
		"postgres brackets":        database("postgres", "postgres://u:"+planted+"@[::1/db"),
		"postgres words":           database("postgres", "host=127.0.0.1 password="+planted+" port=x"),
		"postgres quote":           database("postgres", "host=127.0.0.1 password='"+planted),
		"postgres option":          database("postgres", "postgres://u:"+planted+"@127.0.0.1:1/db?sslmode=wrong"),
		"postgres closed":          database("postgres", "postgres://u:"+planted+"@127.0.0.1:1/db?sslmode=disable"),
		"postgres escape":          database("postgres", "postgres://u:"+planted+"%zz@127.0.0.1:1/db"),
		"postgres at":              database("postgres", "postgres://u:x@"+planted+"@127.0.0.1:1/db"),
		"postgres at, hosts":       database("postgres", "postgres://u:x@"+planted+",y@127.0.0.1:1/db"),
		"postgres at, slash":       database("postgres", "postgres://u:x@"+planted+"/y@127.0.0.1:1/db"),
		"postgres at, query":       database("postgres", "postgres://u:x@"+planted+"?y@127.0.0.1:1/db"),
		"postgres at, setting":     database("postgres", "postgres://u:x@"+planted+"?y=z@127.0.0.1:1/db"),
		"postgres at, port":        database("postgres", "postgres://u:x@127.0.0.1:"+planted+"@127.0.0.1:1/db"),
		"postgres port, slash":     database("postgres", "postgres://localhost:1/"+planted+"@127.0.0.1:1/db"),
		"postgres of java":         database("postgres", "jdbc:postgresql://127.0.0.1:1/db?user=u&password="+planted),
		"postgres of python":       database("postgres", "postgresql+psycopg2://u:"+planted+"@127.0.0.1:1/db"),
		"postgres of .net":         database("postgres", "Host=127.0.0.1;Username=u;Password="+planted),
		"postgres of php":          database("postgres", "pgsql:host=127.0.0.1;user=u;password="+planted),
		"postgres like mysql":      database("postgres", "u:"+planted+"@tcp(127.0.0.1:1)/db?parseTime=true"),
		"mysql bracket":            database("mysql", "u:"+planted+"@tcp(127.0.0.1:1/db"),
		"mysql network":            database("mysql", "u:"+planted+"@none(127.0.0.1:1)/db"),
		"mysql slash":              database("mysql", "u:"+planted+"@tcp(127.0.0.1:1)"),
		"mysql option":             database("mysql", "u:"+planted+"@tcp(127.0.0.1:1)/db?timeout="+planted),
		"mysql url":                database("mysql", "mysql://u:"+planted+"@127.0.0.1:1/db"),
		"mysql closed":             database("mysql", "u:"+planted+"@tcp(127.0.0.1:1)/db"),
		"mysql host":               database("mysql", "u:x@tcp("+planted+"@127.0.0.1:1)/db"),
		"mysql strict":             database("mysql", "u:"+planted+"@tcp(127.0.0.1:1)/db?strict=true"),
		"mysql of java":            database("mysql", "jdbc:mysql://127.0.0.1:1/db?user=u&password="+planted),
		"mysql of python":          database("mysql", "mysql+pymysql://u:"+planted+"@127.0.0.1:1/db"),
		"sqlite key":               database("sqlite", "file:/nonexistent/x.db?_pragma=key('"+planted+"')"),
		"sqlite url":               database("sqlite", "postgres://u:"+planted+"@127.0.0.1/db"),
		"sqlite like mysql":        database("sqlite", "u:"+planted+"@tcp(127.0.0.1:1)/db"),
		"dsn of another kind":      closed + "databases: {main: {driver: postgres, dsn: [" + planted + "]}}",
		"dsn file":                 closed + "databases: {main: {driver: postgres, dsn_file: dsn-bad}}",
		"dsn file, two lines":      closed + "databases: {main: {driver: postgres, dsn_file: two-lines}}",
		"dsn file, closed":         closed + "databases: {main: {driver: mysql, dsn_file: dsn-closed}}",
		"webhook port":             closed + "notify: [{name: n, webhook: {url: \"http://127.0.0.1:port/" + planted + "\"}}]",
		"webhook port, slash":      closed + "notify: [{name: n, webhook: {url: \"http://u:99999/" + planted + "@127.0.0.1:1\"}}]",
		"webhook host":             closed + "notify: [{name: n, webhook: {url: \"http://u:x@y!" + planted + ":1/x\"}}]",
		"webhook scheme":           closed + "notify: [{name: n, webhook: {url: \"slack:" + planted + "\"}}]",
		"webhook control":          closed + "notify: [{name: n, webhook: {url: \"http://h/\\u0001" + planted + "\"}}]",
		"webhook user":             closed + "notify: [{name: n, webhook: {url: \"http://u:" + planted + "@[::1\"}}]",
		"webhook file":             closed + "notify: [{name: n, webhook: {url_file: url-bad}}]",
		"webhook file, two lines":  closed + "notify: [{name: n, webhook: {url_file: two-lines, token_file: two-lines}}]",
		"webhook short form":       closed + "notify: [{name: n, webhook: \"" + planted + "\"}]",
		"switch":                   job("    dead_mans_switch: \"http://127.0.0.1:port/" + planted + "\"\n"),
		"switch file":              job("    dead_mans_switch: {url_file: two-lines}\n"),
		"env of another kind":      job("    env: {TOKEN: [" + planted + "]}\n"),
		"env name":                 job("    env: {\"A B\": " + planted + "}\n"),
		"env twice":                job("    env: {TOKEN: " + planted + ", TOKEN: " + planted + "}\n"),
		"env of baton's":           job("    env: {BATON_X: " + planted + "}\n"),
		"env file":                 job("    env_file: env\n"),
		"env file, quote":          job("    env_file: env-quote\n"),
		"secret":                   job("    secrets: {TOKEN: two-lines}\n"),
		"token":                    closed + "http: {token_file: two-lines}",
		"token, short":             closed + "http: {token_file: short}",
		"tls key":                  closed + "http: {tls: {cert_file: key.pem, key_file: key.pem}}",
		"tls key of redis":         "redis: {url: \"rediss://127.0.0.1:1\", tls: {cert_file: key.pem, key_file: key.pem}}",
	}
	for name, text := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for file := range files {
				text = strings.ReplaceAll(text, "file: "+file, "file: "+dir+"/"+file)
			}
			text = strings.ReplaceAll(text, "TOKEN: two-lines", "TOKEN: "+dir+"/two-lines")
			own, config := &cli{t, map[string]string{"HOME": dir, "NO_COLOR": "1"}}, filepath.Join(t.TempDir(), "baton.yaml")
			put(t, config, text+"\n")
			usable := true // if it is false, doctor and status print the same as config show
			for _, arguments := range [][]string{{"config", "show"}, {"config", "check"}, {"doctor"}, {"status"}} {
				if !usable && (arguments[0] == "doctor" || arguments[0] == "status") {
					continue
				}
				said, well := own.says(append(arguments, "--config", config)...)
				if said == "" {
					t.Errorf("baton %s says nothing", strings.Join(arguments, " "))
				}
				if arguments[0] == "config" && arguments[1] == "show" { // check also reads the files
					usable = well
				}
				for _, secret := range []string{planted, planted[:9]} {
					if strings.Contains(said, secret) {
						t.Errorf("baton %s repeats it:\n%s\nof:\n%s", strings.Join(arguments, " "), said, text)
						break
					}
				}
			}
		})
	}
}

// TestNoComplaintRepeatsASecretOfTheEnvironment checks that an error about a flag or a variable does not contain its value.
func TestNoComplaintRepeatsASecretOfTheEnvironment(t *testing.T) {
	listenToStandardError(t)
	newCLI(t).file("baton.yaml", "redis: {url: \"redis://127.0.0.1:1\", password: \"${REDIS_PASSWORD}\"}\ndatabases: {main: {driver: postgres, dsn: \"${DSN}\"}}\n")
	config, err := filepath.Abs("baton.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, value := range []string{"redis://:" + planted + "@127.0.0.1:port", "redis://:" + planted + "@[::1", planted, "redis://:" + planted + "@127.0.0.1:1"} {
		t.Run("", func(t *testing.T) {
			t.Parallel()
			c := &cli{t, map[string]string{"NO_COLOR": "1", "BATON_REDIS": value, "REDIS_PASSWORD": planted, "DSN": "postgres://u:" + planted + "@127.0.0.1:port/d"}}
			search := func(arguments ...string) {
				t.Helper()
				if said, _ := c.says(arguments...); said == "" || strings.Contains(said, planted) {
					t.Errorf("BATON_REDIS=%s baton %v:\n%s", c.env["BATON_REDIS"], arguments, said)
				}
			}
			search("doctor")
			search("leader")
			search("config", "show")
			delete(c.env, "BATON_REDIS")
			for _, arguments := range [][]string{{"config", "show"}, {"config", "check"}, {"status", "--redis", value}, {"doctor"}} {
				search(append(arguments, "--config", config)...)
			}
		})
	}
}

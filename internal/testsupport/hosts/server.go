package hosts

import (
	"context"
	"database/sql"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/gomodule/redigo/redis"
	_ "github.com/jackc/pgx/v5/stdlib" // driver "pgx"
)

const (
	redisPort    = "6379"
	postgresPort = "5432"
)

// Server is a server program that is installed outside of the hosts. It runs on a machine of its own, without a systemd. After a Kill the
// server still has its data at the next Start.
type Server struct {
	Name string
	Addr string // host:port

	lab    *Lab
	at     *machine
	argv   []string
	dir    string
	cred   *syscall.Credential
	answer func() error
	cmd    *exec.Cmd
	ended  chan struct{}
}

// Redis starts a Redis that keeps acknowledged writes. The argument args contains further arguments of redis-server. If they set a
// password, Conn needs an option with this password.
func (l *Lab) Redis(name string, args ...string) *Server {
	l.t.Helper()
	s := l.server(name, redisPort, nil)
	program, err := exec.LookPath("redis-server")
	if err != nil {
		l.t.Fatalf("redis-server is not installed: scripts/test-deps installs it: %v", err)
	}
	s.argv = append([]string{program, "--port", redisPort, "--bind", "0.0.0.0", "--protected-mode", "no", "--dir", s.dir,
		"--save", "", "--appendonly", "yes", "--appendfsync", "always"}, args...)
	s.answer = func() error {
		c, err := net.DialTimeout("tcp4", s.Addr, time.Second)
		if err == nil {
			err = c.Close()
		}
		return err
	}
	s.Start()
	return s
}

// Conn returns a connection of the tests to a Redis. The connection is closed at the test's end.
func (s *Server) Conn(options ...redis.DialOption) redis.Conn {
	s.lab.t.Helper()
	c, err := redis.Dial("tcp", s.Addr, append(options, redis.DialReadTimeout(within))...)
	if err != nil {
		s.lab.t.Fatal(err)
	}
	s.lab.t.Cleanup(func() { _ = c.Close() })
	return c
}

// Postgres starts a PostgreSQL with a database "app" and a user "app", who is no superuser. The argument settings contains additional
// settings of the server, such as "track_commit_timestamp=on".
func (l *Lab) Postgres(name string, settings ...string) *Server {
	l.t.Helper()
	bins, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is a constant, so Glob returns no error
	if len(bins) == 0 {
		l.t.Fatal("PostgreSQL is not installed: scripts/test-deps installs it")
	}
	bin := bins[len(bins)-1]
	s := l.server(name, postgresPort, serverUser(l, "postgres"))
	data := filepath.Join(s.dir, "data")
	initdb := exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-E", "UTF8", "--locale=C.UTF-8", "--no-sync")
	initdb.Dir, initdb.SysProcAttr = s.dir, &syscall.SysProcAttr{Credential: s.cred}
	if out, err := initdb.CombinedOutput(); err != nil {
		l.t.Fatalf("make a PostgreSQL cluster: %v\n%s", err, out)
	}
	access := "host all all " + subnet + "0/24 trust\n"
	if err := os.WriteFile(filepath.Join(data, "pg_hba.conf"), []byte(access), 0o600); err != nil {
		l.t.Fatal(err)
	}
	s.argv = []string{filepath.Join(bin, "postgres"), "-D", data, "-p", postgresPort, "-h", "0.0.0.0", "-k", "", "-c", "shared_buffers=32MB"}
	for _, setting := range settings {
		s.argv = append(s.argv, "-c", setting)
	}
	s.answer = func() error {
		db, err := sql.Open("pgx", s.adminDSN("postgres"))
		if err != nil {
			return err
		}
		defer db.Close()
		return db.Ping()
	}
	s.Start()
	for _, statement := range []string{"CREATE ROLE app LOGIN", "CREATE DATABASE app OWNER app"} {
		s.exec("postgres", statement)
	}
	return s
}

// DSN returns the DSN of the database app for the user app.
func (s *Server) DSN() string { return "postgres://app@" + s.Addr + "/app?sslmode=disable" }

// Exec runs statements in the database app, as app.
func (s *Server) Exec(statements string) {
	s.lab.t.Helper()
	s.run(s.DSN(), statements)
}

// Rows returns the first column of each row that a query in the database app returns.
func (s *Server) Rows(query string) []string {
	s.lab.t.Helper()
	db, err := sql.Open("pgx", s.DSN())
	if err != nil {
		s.lab.t.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(s.lab.t.Context(), query)
	if err != nil {
		s.lab.t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var all []string
	for rows.Next() {
		var text string
		if err := rows.Scan(&text); err != nil {
			s.lab.t.Fatal(err)
		}
		all = append(all, text)
	}
	if err := rows.Err(); err != nil {
		s.lab.t.Fatal(err)
	}
	return all
}

func (s *Server) exec(database, statement string) {
	s.lab.t.Helper()
	s.run(s.adminDSN(database), statement)
}

func (s *Server) run(dsn, statement string) {
	s.lab.t.Helper()
	db, err := sql.Open("pgx", dsn)
	if err != nil {
		s.lab.t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	if _, err := db.ExecContext(ctx, statement); err != nil {
		s.lab.t.Fatalf("%s: %v", statement, err)
	}
}

func (s *Server) adminDSN(database string) string {
	return "postgres://postgres@" + s.Addr + "/" + database + "?sslmode=disable&connect_timeout=1"
}

// server makes a machine and a directory for a server.
func (l *Lab) server(name, port string, cred *syscall.Credential) *Server {
	l.t.Helper()
	at := l.machine(name)
	s := &Server{Name: name, Addr: net.JoinHostPort(at.addr.String(), port), lab: l, at: at, dir: l.path("server-" + name), cred: cred}
	for _, dir := range []string{l.dir, s.dir} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			l.t.Fatal(err)
		}
		if err := os.Chmod(dir, 0o755); err != nil {
			l.t.Fatal(err)
		}
	}
	if cred != nil {
		if err := os.Chown(s.dir, int(cred.Uid), int(cred.Gid)); err != nil {
			l.t.Fatal(err)
		}
	}
	l.t.Cleanup(func() {
		if s.cmd != nil {
			s.Kill()
		}
	})
	return s
}

// startTries is the number of attempts to start a server that ends before it answers. Further attempts are needed because a killed server
// leaves remains, such as PostgreSQL's shared memory, until all of its processes have ended.
const startTries = 20

// Start starts the server and returns when it answers.
func (s *Server) Start() {
	t := s.lab.t
	t.Helper()
	s.launch()
	tries := 1
	await(t, s.Name+" to answer", func() bool {
		select {
		case <-s.ended:
			if tries++; tries > startTries {
				s.cmd = nil
				text, _ := os.ReadFile(filepath.Join(s.dir, "log"))
				t.Fatalf("%s ended before it was ready:\n%s", s.Name, text)
			}
			time.Sleep(100 * time.Millisecond)
			s.launch()
		default:
		}
		return s.answer() == nil
	})
}

func (s *Server) launch() {
	t := s.lab.t
	t.Helper()
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	cmd := exec.Command(s.argv[0], s.argv[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = s.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.cred}
	ended := make(chan struct{})
	if err := s.at.netns.within(cmd.Start); err != nil {
		t.Fatalf("start %s: %v", s.Name, err)
	}
	go func() { _ = cmd.Wait(); close(ended) }() // the server's log shows how it has ended
	s.cmd, s.ended = cmd, ended
}

// Kill ends the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	s.lab.t.Helper()
	// The children of the process are in other process groups; they end when they notice that the process has ended.
	if err := s.cmd.Process.Kill(); err != nil {
		s.lab.t.Fatal(err)
	}
	<-s.ended
	s.cmd = nil
}

// Freeze stops the server's main process with SIGSTOP.
func (s *Server) Freeze() { s.lab.t.Helper(); s.signal(syscall.SIGSTOP) }

// Thaw lets a frozen server continue.
func (s *Server) Thaw() { s.lab.t.Helper(); s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.lab.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.lab.t.Fatal(err)
	}
}

// serverUser returns the user for a server program that refuses to run as root.
func serverUser(l *Lab, name string) *syscall.Credential {
	l.t.Helper()
	u, err := user.Lookup(name)
	if err != nil {
		l.t.Fatal(err)
	}
	uid, err := strconv.ParseUint(u.Uid, 10, 32)
	if err != nil {
		l.t.Fatal(err)
	}
	gid, err := strconv.ParseUint(u.Gid, 10, 32)
	if err != nil {
		l.t.Fatal(err)
	}
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

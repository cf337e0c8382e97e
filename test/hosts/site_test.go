package hosts

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	lab "baton/internal/testsupport/hosts"
)

const (
	unit     = "baton.service"
	conffile = "/etc/baton/baton.yaml"
	lockKey  = "baton"
	page     = "127.0.0.1:9747"
)

// site is hosts with baton, and the Redis of their election.
type site struct {
	*lab.Lab
	t     *testing.T
	redis *lab.Server
	conn  redis.Conn
	hosts []*lab.Host
}

// plan says what a site is to be. The zero value of a field means its default.
type plan struct {
	hosts     int           // default 2; they are named h1, h2, ...
	ttl       time.Duration // default 30s
	redisArgs []string
	password  string // of Redis, for the tests' own connection
	dropIn    string // of the unit
	config    string // further sections of the configuration
	redisYAML string // what else stands under redis:
	election  string // and in election:, after a comma
	httpYAML  string // and under http:
	// before is called when the Redis is there and no host yet.
	before func(s *site, p *plan)
	// several: the hosts lead several locks, and the caller waits until they do.
	several bool
	// prepare is called on each host before the service starts with its configuration.
	prepare func(h *lab.Host)
}

// newSite boots the hosts, installs the package and starts the service. It returns when
// one host leads and the others stand by.
func newSite(t *testing.T, p plan) *site {
	t.Helper()
	if p.hosts == 0 {
		p.hosts = 2
	}
	if p.ttl == 0 {
		p.ttl = 30 * time.Second
	}
	began := time.Now()
	s := &site{Lab: lab.New(t), t: t}
	s.redis = s.Redis("redis", p.redisArgs...)
	var options []redis.DialOption
	if p.password != "" {
		options = append(options, redis.DialPassword(p.password))
	}
	s.conn = s.redis.Conn(options...)
	if p.before != nil {
		p.before(s, &p)
	}
	var names []string
	for i := range p.hosts {
		names = append(names, fmt.Sprintf("h%d", i+1))
	}
	s.hosts = s.Hosts(names...)
	booted := time.Now()
	for _, h := range s.hosts {
		install(t, h, packageFile(t, "BATON_DEB"))
		h.WriteMode(conffile, s.configuration(p), "0640")
		h.Must("chgrp", "baton", conffile)
		if p.prepare != nil {
			p.prepare(h)
		}
		if p.dropIn != "" {
			h.Write("/etc/systemd/system/baton.service.d/test.conf", p.dropIn)
			h.Must("systemctl", "daemon-reload")
		}
		h.Must("systemctl", "restart", unit)
	}
	if !p.several {
		s.settled()
	}
	t.Logf("%d hosts: booted in %v, installed and elected in %v", p.hosts, round(booted.Sub(began)), round(time.Since(booted)))
	return s
}

// configuration is the file of every host; "jobs:" and other sections are the caller's. Without jobs the hosts
// campaign since it says candidate: true.
func (s *site) configuration(p plan) string {
	return fmt.Sprintf("node: {candidate: true}\nredis:\n  url: redis://%s/0\n%selection: {lock_key: %s, ttl: %v%s}\nhttp:\n  listen: %s\n%slog: {format: json}\n%s",
		s.redis.Addr, p.redisYAML, lockKey, p.ttl, p.election, page, p.httpYAML, p.config)
}

// packageFile returns the path of a package that make test-systemd has built.
func packageFile(t *testing.T, variable string) string {
	t.Helper()
	path := os.Getenv(variable)
	if path == "" {
		t.Fatalf("$%s does not name a package: `make test-systemd` builds and names it", variable)
	}
	return path
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

// install installs or upgrades the package like an administrator who keeps edited files.
func install(t *testing.T, h *lab.Host, deb string) string {
	t.Helper()
	h.Write("/root/baton.deb", read(t, deb))
	return h.Must("env", "DEBIAN_FRONTEND=noninteractive", "dpkg", "--force-confold", "--force-unsafe-io", "-i", "/root/baton.deb")
}

// settled waits until systemd shows that one host leads and that the others know this.
func (s *site) settled() (leader *lab.Host) {
	s.t.Helper()
	s.Await("one host to lead and the others to stand by", func() bool {
		leader = nil
		name := s.leaderName()
		for _, h := range s.hosts {
			status := h.Property(unit, "StatusText")
			switch {
			case h.Name == name && strings.HasPrefix(status, "leading epoch "):
				leader = h
			case status != "standby, leader "+name:
				return false
			}
		}
		return leader != nil
	})
	return leader
}

// other returns a host that does not lead.
func (s *site) other(leader *lab.Host) *lab.Host {
	for _, h := range s.hosts {
		if h != leader {
			return h
		}
	}
	s.t.Fatal("there is one host only")
	return nil
}

// owner returns the owner of the lock, or "" if the lock is free.
func (s *site) owner() string { s.t.Helper(); return s.ownerOf(lockKey) }

func (s *site) ownerOf(lock string) string {
	s.t.Helper()
	owner, err := redis.String(s.conn.Do("GET", lock))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		s.t.Fatal(err)
	}
	return owner
}

// successor reads the lock every half millisecond until it has another owner, and returns the time of that reading.
func (s *site) successor(old string) time.Time { s.t.Helper(); return s.successorOf(lockKey, old) }

func (s *site) successorOf(lock, old string) time.Time {
	s.t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(500 * time.Microsecond) {
		if owner := s.ownerOf(lock); owner != "" && owner != old {
			return time.Now()
		}
	}
	s.t.Fatal("nobody took the lock over within a minute")
	return time.Time{}
}

// leaderName returns the node of the present term in Redis.
func (s *site) leaderName() string { s.t.Helper(); return s.leaderNameOf(lockKey) }

func (s *site) leaderNameOf(lock string) string {
	s.t.Helper()
	if s.ownerOf(lock) == "" {
		return ""
	}
	name, err := redis.String(s.conn.Do("HGET", "{"+lock+"}:term", "node_id"))
	if err != nil && !errors.Is(err, redis.ErrNil) {
		s.t.Fatal(err)
	}
	return name
}

func (s *site) epoch() int64 { s.t.Helper(); return s.epochOf(lockKey) }

func (s *site) epochOf(lock string) int64 {
	s.t.Helper()
	epoch, err := redis.Int64(s.conn.Do("HGET", "{"+lock+"}:term", "epoch"))
	if err != nil {
		s.t.Fatal(err)
	}
	return epoch
}

// get requests a page of a host, on the host's loopback.
func (s *site) get(h *lab.Host, path string) (int, string) {
	s.t.Helper()
	return s.ask(h, http.MethodGet, path, nil)
}

// ask works like get, with a method and headers.
func (s *site) ask(h *lab.Host, method, path string, header map[string]string) (int, string) {
	s.t.Helper()
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return s.Dial(h.Name, page) },
	}}
	req, err := http.NewRequestWithContext(s.t.Context(), method, "http://"+page+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	for name, value := range header {
		req.Header.Set(name, value)
	}
	resp, err := client.Do(req)
	if err != nil {
		s.t.Fatalf("%s %s of %s: %v", method, path, h.Name, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

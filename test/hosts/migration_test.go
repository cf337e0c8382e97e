package hosts

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/gomodule/redigo/redis"

	lab "baton/internal/testsupport/hosts"
	"baton/internal/testsupport/walk"
)

const (
	ledPath   = "/var/lib/baton/led"
	ledScript = "/opt/led"
	// led stamps for as long as its host leads.
	led = `exec 9<> <(:); while :; do echo "${EPOCHREALTIME/./} $BATON_EPOCH" >> ` + ledPath + `; read -t 0.005 -u 9; done`
	// ledJob runs it.
	ledJob = "jobs:\n- {name: led, schedule: \"@always\", grace: 200ms, command: [/bin/bash, " + ledScript + "]}\n"
)

// Programs that lock by SET NX, as the page has them mended, and by Redisson's RLock give
// way to baton host by host, by the page's own configuration and commands. At no time do
// two of all of them lead, and when the last program has gone, baton does.
func TestOldLocksAreLeftByTheGuides(t *testing.T) {
	s := newSite(t, plan{prepare: func(h *lab.Host) { h.Write(ledScript, led) }})
	t.Run("SET NX", func(t *testing.T) {
		page := guide(t, "from-set-nx.md")
		scripts := regexp.MustCompile(`EVAL "(.*)" 1 lock my-own-value`).FindAllStringSubmatch(page.block(t, "redis-cli", "EVAL"), -1)
		if len(scripts) != 2 {
			t.Fatalf("the page has %d scripts, to renew and to delete", len(scripts))
		}
		m := migration{site: s, t: t, page: page, key: "lock", old: func(id string) oldLock {
			return oldLock{id, []any{"SET", "lock", id, "NX", "EX", 30}, []any{"EVAL", scripts[0][1], 1, "lock", id}, []any{"EVAL", scripts[1][1], 1, "lock", id}}
		}}
		m.run()
	})
	t.Run("Redisson", func(t *testing.T) {
		const channel = "redisson_lock__channel:{nightly}"
		page := guide(t, "from-redisson.md")
		m := migration{site: s, t: t, page: page, key: "nightly", old: func(id string) oldLock {
			id = "b983c153-7421-469a-addb-44fb92259a1" + id[len(id)-1:] + ":1"
			return oldLock{id, []any{"EVAL", redissonLock, 1, "nightly", 30000, id}, []any{"EVAL", redissonRenew, 1, "nightly", 30000, id}, []any{"EVAL", redissonUnlock, 2, "nightly", channel, 0, 30000, id}}
		}}
		m.run()
		if fields, err := redis.IntMap(s.conn.Do("HGETALL", "nightly")); err != nil || len(fields) != 1 {
			t.Errorf("baton's lock in Redisson's format is %v, %v", fields, err)
		}
		m.ownFormat()
	})
}

// What Redisson's RLock runs: tryLockInner, renewExpiration and unlockInner.
const (
	redissonLock = `if redis.call('exists', KEYS[1]) == 0 or redis.call('hexists', KEYS[1], ARGV[2]) == 1 then
		redis.call('hincrby', KEYS[1], ARGV[2], 1); redis.call('pexpire', KEYS[1], ARGV[1]); return 'OK' end; return nil`
	redissonRenew  = `if redis.call('hexists', KEYS[1], ARGV[2]) == 1 then redis.call('pexpire', KEYS[1], ARGV[1]); return 1 end; return 0`
	redissonUnlock = `if redis.call('hexists', KEYS[1], ARGV[3]) == 0 then return nil end
		if redis.call('hincrby', KEYS[1], ARGV[3], -1) > 0 then redis.call('pexpire', KEYS[1], ARGV[2]); return 0 end
		redis.call('del', KEYS[1]); redis.call('publish', KEYS[2], ARGV[1]); return 1`
)

// guidePage is the blocks of a page.
type guidePage []walk.Block

func guide(t *testing.T, name string) guidePage {
	t.Helper()
	path := filepath.Join("docs/how-to", name) // make test-systemd runs the tests in the repository's root
	if _, err := os.Stat(path); err != nil {
		path = filepath.Join("../..", path)
	}
	blocks, err := walk.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// block is the first of a kind that has a word in it.
func (p guidePage) block(t *testing.T, kind, word string) string {
	t.Helper()
	for _, b := range p {
		if b.Kind == kind && strings.Contains(b.Text, word) {
			return b.Text
		}
	}
	t.Fatalf("the page has no block of kind %s with %q", kind, word)
	return ""
}

// oldLock is how a program that is not baton locks: three commands of Redis.
type oldLock struct {
	id                string
	take, renew, free []any
}

// program is one that runs on a host, and leads or waits.
type program struct {
	quit   chan struct{}
	ended  chan struct{}
	leads  chan bool // its last word, of one
	stamps []stamp
	err    error
}

// stamp says that somebody acted as the leader.
type stamp struct {
	at   time.Time
	term string
}

// migration is one from an old lock.
type migration struct {
	*site
	t      *testing.T
	page   guidePage
	key    string
	old    func(id string) oldLock
	all    []*program
	config string
}

func (m *migration) run() {
	m.t.Helper()
	one := m.start("program-1")
	m.Await("the first program to lead", one.leading)
	two := m.start("program-2")
	m.configure(m.page.block(m.t, "yaml", "lock_key: "+m.key))
	for _, h := range m.hosts {
		m.Await("baton of "+h.Name+" to stand by, and to say why", func() bool {
			out := h.Run("sh", "-c", m.commands("baton explain"))
			return strings.Count(out.Stdout, "held by a client that is not baton") >= 2 // status, and explain
		})
	}
	m.stop(one)
	m.Await("somebody else to lead", func() bool { return two.leading() || m.leader() != nil })
	// Back again, to have it both ways: the program leads wherever no baton does.
	m.each("systemctl stop baton")
	m.Await("the second program to lead", two.leading)
	m.each("systemctl start baton")
	stopped := time.Now()
	m.stop(two)
	m.Await("baton to lead", func() bool { return m.leader() != nil })
	note("%-66s %3d  %v", m.t.Name()+": the last program has released → baton leads", 1, round(time.Since(stopped)))
	three := m.start("program-3") // one that somebody forgot: it waits
	m.Await("the leader to work", func() bool {
		return m.leader().Run("grep", "-q", fmt.Sprint(" ", m.epochOf(m.key), "$"), ledPath).Code == 0
	})
	if three.leading() {
		m.t.Error("a program leads beside baton")
	}
	m.stop(three)
	m.judge()
}

// ownFormat goes over to baton's own format as the page says. What jobs remember is kept.
func (m *migration) ownFormat() {
	m.t.Helper()
	words := strings.Fields(strings.ReplaceAll(m.page.block(m.t, "sh", "systemctl stop baton"), "sudo ", ""))
	if got := strings.Join(words, " "); got != "systemctl stop baton systemctl start baton" {
		m.t.Fatalf("the page has other commands now: %s", got)
	}
	m.each("systemctl stop baton")
	m.config = strings.ReplaceAll(m.config, "  lock_format: redisson\n", "")
	m.write()
	m.each("systemctl start baton")
	m.Await("baton to lead by its own format", func() bool {
		kind, err := redis.String(m.conn.Do("TYPE", m.key))
		return err == nil && kind == "string" && m.leader() != nil
	})
	if out := m.hosts[0].Must("baton", "job", "history", "led"); strings.Count(out, "shutting down") == 0 {
		m.t.Errorf("the history of before is gone:\n%s", out)
	}
}

// commands are those lines of a block that are baton's.
func (m *migration) commands(word string) string {
	m.t.Helper()
	var lines []string
	for line := range strings.Lines(m.page.block(m.t, "sh", word)) {
		if strings.HasPrefix(line, "baton ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "")
}

func (m *migration) configure(yaml string) {
	m.t.Helper()
	if !strings.Contains(yaml, "redis://127.0.0.1:6379/0") {
		m.t.Fatalf("the page names another Redis:\n%s", yaml)
	}
	m.config = strings.ReplaceAll(yaml, "127.0.0.1:6379", m.redis.Addr) + ledJob
	m.each("systemctl stop baton; rm -f " + ledPath)
	m.write()
	m.each("runuser -u baton -- baton config check; systemctl restart baton")
}

func (m *migration) write() {
	for _, h := range m.hosts {
		h.WriteMode(conffile, m.config, "0640")
		h.Must("chgrp", "baton", conffile)
	}
}

func (m *migration) each(script string) {
	for _, h := range m.hosts {
		h.Shell(script)
	}
}

// leader is the host whose baton leads, by what systemd shows; nil for none.
func (m *migration) leader() *lab.Host {
	for _, h := range m.hosts {
		if strings.HasPrefix(h.Property(unit, "StatusText"), "leading epoch ") {
			return h
		}
	}
	return nil
}

// judge compares all stamps: whoever leads has led in one piece, with nobody between.
func (m *migration) judge() {
	m.t.Helper()
	var all []stamp
	for _, p := range m.all {
		all = append(all, p.stamps...)
	}
	for _, h := range m.hosts {
		text, _ := h.Read(ledPath)
		for line := range strings.Lines(text) {
			micros, epoch, ok := strings.Cut(strings.TrimSpace(line), " ")
			n, err := strconv.ParseInt(micros, 10, 64)
			if err != nil || !ok {
				m.t.Fatalf("stamp %q: %v", line, err)
			}
			all = append(all, stamp{time.UnixMicro(n), "baton " + epoch})
		}
	}
	slices.SortFunc(all, func(a, b stamp) int { return a.at.Compare(b.at) })
	terms, seen := []string{}, map[string]bool{}
	for _, s := range all {
		switch {
		case len(terms) > 0 && terms[len(terms)-1] == s.term:
		case seen[s.term]:
			m.t.Fatalf("%s led at %s, and %s before and after that", terms[len(terms)-1], clock(s.at), s.term)
		default:
			seen[s.term] = true
			terms = append(terms, s.term)
		}
	}
	if len(terms) < 3 || !strings.HasPrefix(terms[0], "program-1") || !strings.HasPrefix(terms[len(terms)-1], "baton ") {
		m.t.Errorf("those who led: %q", terms)
	}
	note("%-66s %3d  none beside another", m.t.Name()+": terms of programs and of baton", len(terms))
}

// start starts a program.
func (m *migration) start(name string) *program {
	m.t.Helper()
	p := &program{quit: make(chan struct{}), ended: make(chan struct{}), leads: make(chan bool, 1)}
	p.leads <- false
	m.all = append(m.all, p)
	conn := m.redis.Conn()
	go func() {
		defer close(p.ended)
		p.err = p.compete(conn, m.old(name), name)
	}()
	return p
}

func (m *migration) stop(p *program) {
	m.t.Helper()
	close(p.quit)
	<-p.ended
	if p.err != nil {
		m.t.Fatal(p.err)
	}
}

func (p *program) leading() bool {
	leads := <-p.leads
	p.leads <- leads
	return leads
}

func (p *program) say(leads bool) { <-p.leads; p.leads <- leads }

// compete tries again and again, and works while it leads.
func (p *program) compete(conn redis.Conn, lock oldLock, name string) error {
	do := func(command []any) (string, error) {
		reply, err := conn.Do(command[0].(string), command[1:]...)
		if text, ok := reply.([]byte); ok {
			return string(text), err
		}
		return fmt.Sprint(reply), err
	}
	for term := 1; ; {
		got, err := do(lock.take)
		if err != nil {
			return err
		}
		wait := 20 * time.Millisecond
		if got == "OK" {
			p.say(true)
			err := p.work(fmt.Sprint(name, " ", term), func() (bool, error) { got, err := do(lock.renew); return got == "1", err })
			p.say(false)
			if err != nil {
				return err
			}
			if got, err = do(lock.free); err != nil {
				return err
			}
			if got != "1" {
				return fmt.Errorf("%s had lost its lock when it was to release it: %s", name, got)
			}
			term, wait = term+1, 0
		}
		select {
		case <-p.quit:
			return nil
		case <-time.After(wait):
		}
	}
}

// work stamps and renews until it is told to quit.
func (p *program) work(term string, renew func() (bool, error)) error {
	for next := time.Now(); ; {
		select {
		case <-p.quit:
			return nil
		case <-time.After(2 * time.Millisecond):
		}
		p.stamps = append(p.stamps, stamp{time.Now(), term})
		if time.Now().Before(next) {
			continue
		}
		next = time.Now().Add(100 * time.Millisecond)
		ok, err := renew()
		if err != nil {
			return err
		}
		if !ok {
			return fmt.Errorf("%s has lost its lock", term)
		}
	}
}

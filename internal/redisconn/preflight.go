package redisconn

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/gomodule/redigo/redis"

	"baton/internal/finding"
)

// PreflightOptions are the uses of a Redis.
type PreflightOptions struct {
	Subject string // the subject of findings; "redis" if empty
	Section string // of the configuration, for remedies; "redis" if empty
	// LockKey is the election's lock, "" if it is in another store.
	LockKey        string
	WithoutScripts bool // the lock is taken without scripts
	WaitReplicas   int
	AttemptTimeout time.Duration // the time limit of a renewal; 0: not checked
	Data           bool          // jobs read from it; false: it has only a lock
	Store          bool          // it has data and nothing of the lock, nor of the history
	Accesses       []Access
}

// Preflight finds settings and states that can lose data or stop flushes: on one server, on the
// master behind Sentinels, or on every master of a Cluster. It changes nothing and ends with
// ctx. A setting that it may not read, as in many a managed Redis, is a finding, too. usable is
// false if no server answered.
func Preflight(ctx context.Context, s *Store, o PreflightOptions) (findings []finding.Finding, usable bool) {
	if o.Subject == "" {
		o.Subject = "redis"
	}
	if o.Section == "" {
		o.Section = "redis"
	}
	r := &examination{options: o, subject: o.Subject, failover: s.FailsOver(), cluster: s.IsCluster()}
	servers, err := s.Masters(ctx)
	if err != nil {
		r.away(err)
		return r.findings, false
	}
	for _, node := range servers {
		if s.IsCluster() {
			r.subject = o.Subject + " " + node.Address()
		}
		usable = r.server(ctx, node) || usable
	}
	r.subject = o.Subject
	if usable {
		r.access(ctx, s)
	}
	return r.findings, usable
}

// examination collects findings.
type examination struct {
	options  PreflightOptions
	subject  string
	failover bool // a replica takes over without an operator
	cluster  bool
	findings []finding.Finding
}

func (x *examination) add(severity finding.Severity, what, consequence, remedy string) {
	x.findings = append(x.findings, finding.Finding{Severity: severity, Subject: x.subject, What: what, Consequence: consequence,
		Remedy: remedy})
}

func (x *examination) away(err error) {
	consequence := "this host cannot lead. If no host reaches it, no node leads, and nothing is flushed"
	if x.options.Store {
		consequence = "jobs that read it fail, and no others; nothing is lost that it keeps"
	}
	x.add(finding.SeverityError, fmt.Sprintf("it does not answer: %v", Explain(err)), consequence,
		"start it, or correct "+x.options.Section+" in the configuration")
}

// forData is the severity of a risk to data: info if the server has none.
func (x *examination) forData(severity finding.Severity) finding.Severity {
	if x.options.Data {
		return severity
	}
	return finding.SeverityInfo
}

// server examines one master.
func (x *examination) server(ctx context.Context, node *Server) bool {
	c, err := node.Connect(ctx)
	if err != nil {
		x.away(err)
		return false
	}
	defer c.Close() // it is not used again
	text, err := redis.String(redis.DoContext(c, ctx, "INFO"))
	if _, refused := err.(redis.Error); err != nil && !refused { //nolint:errorlint // redigo does not wrap replies
		x.away(err)
		return false
	}
	f := facts{info: parseInfo(text), config: settingsOf(ctx, c)}
	before := len(x.findings)
	if err != nil {
		x.add(finding.SeverityWarning, fmt.Sprintf("INFO is refused, so neither eviction nor persistence could be checked: %v", err),
			"a bad setting shows only when data is lost, and a restart of Redis without its data is not noticed",
			"grant it: ACL SETUSER … +info")
	} else {
		x.judge(f)
	}
	if !x.options.Store { // the slots go by the clock of the Redis that has the lock
		x.clock(ctx, c)
	}
	x.scripts(ctx, c)
	speed := x.speed(ctx, c)
	for _, found := range x.findings[before:] {
		if found.Severity.Rank() < finding.SeverityInfo.Rank() {
			return true
		}
	}
	x.add(finding.SeverityOK, fmt.Sprintf("it answers%s: %s; %s", f.keeping(), f.product(), speed), "", "")
	return true
}

// facts are a server's INFO and settings. config lacks settings that it does not disclose.
type facts struct{ info, config map[string]string }

// product is the server's name and version. Valkey names the equivalent Redis in redis_version.
func (f facts) product() string {
	if version := f.info["valkey_version"]; version != "" {
		return "Valkey " + version
	}
	return "Redis " + f.info["redis_version"]
}

// parseInfo reads the reply of INFO.
func parseInfo(text string) map[string]string {
	info := map[string]string{}
	for line := range strings.Lines(text) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			info[name] = value
		}
	}
	return info
}

// settingsOf reads settings that INFO does not have. The command is in lower case because baton's
// user need not be granted it.
func settingsOf(ctx context.Context, c redis.Conn) map[string]string {
	settings := map[string]string{}
	for _, name := range []string{"save", "appendfsync", "min-replicas-to-write"} {
		if pair, err := redis.Strings(redis.DoContext(c, ctx, "config", "GET", name)); err == nil && len(pair) == 2 {
			settings[name] = pair[1]
		}
	}
	return settings
}

// number is a number of INFO; 0 if missing.
func (f facts) number(name string) int64 {
	n, _ := strconv.ParseInt(f.info[name], 10, 64) // missing or no number: 0
	return n
}

// clockTolerance is the reported difference of clocks.
const clockTolerance = time.Second

// clock compares Redis' clock with ours.
func (x *examination) clock(ctx context.Context, c redis.Conn) {
	sent := time.Now()
	reply, err := redis.Int64s(redis.DoContext(c, ctx, "TIME"))
	if err != nil || len(reply) != 2 {
		x.add(finding.SeverityInfo, fmt.Sprintf("its clock could not be checked: %v", err), "a difference of clocks would go unnoticed",
			"grant it: ACL SETUSER … +time")
		return
	}
	trip := time.Since(sent)
	theirs := time.Unix(reply[0], reply[1]*int64(time.Microsecond/time.Nanosecond))
	apart := theirs.Sub(sent.Add(trip / 2)).Round(100 * time.Millisecond)
	if apart.Abs()-trip/2 <= clockTolerance {
		return
	}
	how := "ahead of"
	if apart < 0 {
		how = "behind"
	}
	x.add(finding.SeverityWarning, fmt.Sprintf("its clock is %v %s this host's", apart.Abs(), how),
		"nothing is lost: leases do not go by clocks. But slots start by the leader's clock, early or late by as much, twice as far "+
			"apart after a takeover; and times of events and runs mislead",
		"run chrony or another NTP client on both hosts")
}

// scripts runs a script that does nothing.
func (x *examination) scripts(ctx context.Context, c redis.Conn) {
	_, err := redis.DoContext(c, ctx, "EVAL", "return 1", 0)
	if err == nil {
		return
	}
	switch needed := !x.options.WithoutScripts && x.options.LockKey != ""; {
	case x.options.Data:
		x.add(finding.SeverityError, fmt.Sprintf("scripts are refused: %v", err),
			"no job can run: data is staged and removed by scripts, and claimed by one node through one. Nothing is lost, the changes wait",
			"allow EVAL and EVALSHA: ACL SETUSER … +eval +evalsha; where a provider forbids scripts, another Redis is needed")
	case needed:
		x.add(finding.SeverityError, fmt.Sprintf("scripts are refused: %v", err), "no node can lead",
			"allow EVAL and EVALSHA, or set election.acquire: setnx")
	}
}

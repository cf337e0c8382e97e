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

// PreflightOptions say how baton uses a Redis.
type PreflightOptions struct {
	Subject string // the subject of findings; "redis" if empty
	Section string // the section of the configuration, for remedies; "redis" if empty
	// LockKey is the election's lock. It is "" if the lock is in another store.
	LockKey        string
	WithoutScripts bool // the lock is taken without scripts
	WaitReplicas   int
	AttemptTimeout time.Duration // the time limit of a renewal; 0: not checked
	Data           bool          // jobs read data from this Redis; otherwise it has only a lock
	Store          bool          // this Redis has data, but neither the lock nor the history
	Accesses       []Access
}

// Preflight finds settings and states that can lose data or stop flushes. It examines one server, the master behind Sentinels, or
// every master of a Cluster. It changes nothing, and ends when ctx ends. If a server does not let baton read a setting, as is usual
// for managed services, this is also a finding. The result usable is false if no server answered.
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

// examination collects the findings of a preflight.
type examination struct {
	options  PreflightOptions
	subject  string
	failover bool // a replica takes over without an operator
	cluster  bool
	findings []finding.Finding
}

func (x *examination) add(kind finding.Kind, what, consequence, remedy string) {
	x.findings = append(x.findings, kind.Of(x.subject, what, consequence, remedy))
}

func (x *examination) away(err error) {
	consequence := "this host cannot lead. If no host reaches it, no node leads, and nothing is flushed"
	if x.options.Store {
		consequence = "only jobs that read this store fail; its data is not lost"
	}
	x.add(finding.Away, fmt.Sprintf("it does not answer: %v", Explain(err)), consequence,
		"start it, or correct "+x.options.Section+" in the configuration")
}

// forData returns the kind of a finding about a risk to data. It returns the argument kind, or this kind with the severity info if
// the server has no data.
func (x *examination) forData(kind finding.Kind) finding.Kind {
	if x.options.Data {
		return kind
	}
	return kind.As(finding.SeverityInfo)
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
		x.add(finding.NoInfo, fmt.Sprintf("INFO is refused, so neither eviction nor persistence could be checked: %v", err),
			"baton cannot warn of settings that lose data, and does not notice if Redis restarts without its data",
			"grant INFO to the user: ACL SETUSER … +info")
	} else {
		x.judge(f)
	}
	if !x.options.Store { // slots follow the clock of the Redis that has the lock
		x.clock(ctx, c)
	}
	x.scripts(ctx, c)
	speed := x.speed(ctx, c)
	for _, found := range x.findings[before:] {
		if found.Severity.Rank() < finding.SeverityInfo.Rank() {
			return true
		}
	}
	x.add(finding.RedisFits, fmt.Sprintf("it answers%s: %s; %s", f.keeping(), f.product(), speed), "", "")
	return true
}

// facts contains the values of a server's INFO and its settings. The field config contains only the settings that the server
// discloses.
type facts struct{ info, config map[string]string }

// product returns the name and version of the server. Valkey gives the version of the equivalent Redis in the field redis_version.
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

// settingsOf reads settings that INFO does not contain. It writes the command in lower case. Lower case marks a command that may be
// refused, because baton's user need not have the permission for it.
func settingsOf(ctx context.Context, c redis.Conn) map[string]string {
	settings := map[string]string{}
	for _, name := range []string{"save", "appendfsync", "min-replicas-to-write"} {
		if pair, err := redis.Strings(redis.DoContext(c, ctx, "config", "GET", name)); err == nil && len(pair) == 2 {
			settings[name] = pair[1]
		}
	}
	return settings
}

// number returns the number in one field of INFO, or 0 if it is missing.
func (f facts) number(name string) int64 {
	n, _ := strconv.ParseInt(f.info[name], 10, 64) // 0 if the value is missing or no number
	return n
}

// clockTolerance is the difference between two clocks above which a finding is reported.
const clockTolerance = time.Second

// clock compares Redis' clock with the clock of this host.
func (x *examination) clock(ctx context.Context, c redis.Conn) {
	sent := time.Now()
	reply, err := redis.Int64s(redis.DoContext(c, ctx, "TIME"))
	if err != nil || len(reply) != 2 {
		x.add(finding.UncheckedRedis, fmt.Sprintf("its clock could not be checked: %v", err), "baton would not notice a "+
			"difference of clocks",
			"grant TIME to the user: ACL SETUSER … +time")
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
	x.add(finding.Clock, fmt.Sprintf("its clock is %v %s this host's", apart.Abs(), how),
		"nothing is lost, because leases do not use clocks. But slots start by the leader's clock, too early or too late by this "+
			"difference, and after a takeover by up to twice the difference; the times of events and runs are also wrong",
		"run chrony or another NTP client on both hosts")
}

// scripts finds out whether the server runs scripts. It sends a script that does nothing.
func (x *examination) scripts(ctx context.Context, c redis.Conn) {
	_, err := redis.DoContext(c, ctx, "EVAL", "return 1", 0)
	if err == nil {
		return
	}
	switch needed := !x.options.WithoutScripts && x.options.LockKey != ""; {
	case x.options.Data:
		x.add(finding.NoScripts, fmt.Sprintf("scripts are refused: %v", err),
			"no job can run, because baton claims runs, and stages and removes data, by scripts. Nothing is lost, the changes wait",
			"allow EVAL and EVALSHA: ACL SETUSER … +eval +evalsha; if the provider forbids scripts, use another Redis")
	case needed:
		x.add(finding.NoScripts, fmt.Sprintf("scripts are refused: %v", err), "no node can lead",
			"allow EVAL and EVALSHA, or set election.acquire: setnx")
	}
}

// Package alert decides which events get a notification, and its words: a leader that changed, a job that fails, is late or is well
// again. Package notify delivers them.
//
// [Notifications] belong to the node. They keep the state of each job that decides the next report: the failures in a row, the
// lateness, and the dead letters that were reported. At the beginning of a term that state is unknown. So the leader reads the ledger
// and the history of the election, and holds the ends of runs until it has.
//
// The rules: the first failure and the recovery are reported at once, repeated failures, missed slots and dead letters at growing or
// fixed intervals. An event is reported twice rather than never: if the leader before has crashed, its reports do not count.
// Candidacies and runs never wait for a report.
//
// What fails, and what then:
//
//   - Redis does not answer at the beginning of a term: it is asked again every second, and the ends of runs are held. If the term ends
//     before, they are reported without the state.
//   - A node dies with events in its queues: they are lost. The next leader finds jobs that fail or are late in the ledger, and reports
//     them.
//   - The configuration is reloaded: a job keeps its state if it keeps its name and lock.
package alert

import (
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
	"baton/internal/notify"
	"baton/internal/notify/service"
	"baton/internal/secret"
)

const (
	// farewell is the time for deliveries when the daemon ends, after its locks are released.
	farewell = 2 * time.Second
	// A dead man's switch gets its request until the next success; but a sign of life that comes much too late is useless.
	pingTimeout     = 10 * time.Second
	pingGiveUpAfter = 10 * time.Minute
)

// Notifications send the events that the configuration selects. They belong to the node: its candidacies report events to them, and do
// not wait.
type Notifications struct {
	log      *zap.Logger
	nodeID   string
	dispatch *notify.Dispatcher
	metrics  Metrics
	newID    func() (string, error) // of an event

	mu      sync.Mutex
	targets []audience
	jobs    map[string]*reportedJob
	misses  map[missKey]*missWindow
	epochs  map[string]int64 // of the last term by lock key
}

// audience is a target and the events that it wants.
type audience struct {
	name string
	on   []string
	jobs []string // empty: all
}

// Metrics count the outcomes of deliveries.
type Metrics interface {
	AddTargets(names ...string)
	Notified(target, outcome string, events int)
}

// New delivers nothing until Reload names the targets.
func New(c config.Config, newID func() (string, error), log *zap.Logger, metrics Metrics) *Notifications {
	n := &Notifications{
		log: log, nodeID: c.Node.ID, metrics: metrics, newID: newID,
		jobs: map[string]*reportedJob{}, misses: map[missKey]*missWindow{}, epochs: map[string]int64{},
	}
	n.dispatch = notify.NewDispatcher(log, func(target string, o notify.Outcome, events int) {
		metrics.Notified(target, string(o), events)
	})
	n.Reload(c)
	return n
}

// Reload changes to another configuration. Events that wait for a target with the same name are kept.
func (n *Notifications) Reload(c config.Config) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.targets = nil
	var routes []notify.Route
	for _, t := range c.Notify {
		n.targets = append(n.targets, audience{name: t.Name, on: t.On, jobs: t.Jobs})
		known := func() []string { return secret.Known(c) }
		routes = append(routes, routeOf(t, known))
	}
	jobs := map[string]*reportedJob{}
	for _, j := range c.Jobs {
		jobs[j.Name] = newToldJob(j).succeed(n.jobs[j.Name], len(n.targets) > 0)
		if w := j.DeadMansSwitch; w != nil {
			routes = append(routes, notify.Route{
				Name: pingName(j.Name), Target: notify.NewPing(w.Address, w.Token),
				Timeout: pingTimeout, GiveUpAfter: pingGiveUpAfter, Latest: true,
			})
		}
	}
	n.jobs = jobs
	for _, r := range routes {
		n.metrics.AddTargets(r.Name)
	}
	n.dispatch.Update(routes)
}

// routeOf is the route of events to a target. Errors quote a command's output, without the secrets that known returns.
func routeOf(t config.Notify, known func() []string) notify.Route {
	r := notify.Route{Name: t.Name, Timeout: t.Timeout, GiveUpAfter: t.GiveUpAfter}
	if w := t.Webhook; w != nil {
		format, _ := service.Find(t.Format)
		r.Target, r.Pace = notify.NewWebhook(format, w.Address, w.Token), format.Pace
		return r
	}
	r.Target = commandOf(t, known)
	return r
}

func commandOf(t config.Notify, known func() []string) notify.Target {
	env := commandEnv(os.Environ())
	return notify.NewCommand(t.Command, env).Filter(func() notify.Filter {
		set := map[string]string{}
		for _, e := range env {
			name, value, _ := strings.Cut(e, "=")
			set[name] = value
		}
		return secret.NewRedactor(append(secret.InVariables(set, nil), known()...)).Pass
	})
}

// commandEnv is the daemon's environment without systemd's variables for the daemon, and without those for its traces.
func commandEnv(all []string) []string {
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		ofSystemd := []string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
		return slices.Contains(ofSystemd, name) || strings.HasPrefix(name, "OTEL_")
	})
}

// pingName is the name of a job's dead man's switch in logs and metrics: no target of the configuration can have a slash in its name.
func pingName(job string) string { return "dead_mans_switch/" + job }

// Close tries queued events for at most two seconds more. The caller has released the locks: no other node waits for this one then.
func (n *Notifications) Close(ctx context.Context) {
	n.mu.Lock()
	n.reportMissed()
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	n.dispatch.Close(ctx)
}

// hasTargets reports whether events are delivered anywhere.
func (n *Notifications) hasTargets() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.targets) > 0
}

// send delivers an event to all targets that it concerns. n.mu is held.
func (n *Notifications) send(e notify.Event) {
	if e.At.IsZero() {
		e.At = time.Now()
	}
	e.At = e.At.UTC().Truncate(time.Millisecond)
	if e.NodeID == "" {
		e.NodeID = n.nodeID
	}
	if e.Epoch == 0 {
		e.Epoch = n.epochs[e.LockKey]
	}
	if id, err := n.newID(); err == nil { // it is sent even without an ID
		e.ID = id
	}
	for _, t := range n.targets {
		if slices.Contains(t.on, string(e.Kind)) && n.concerns(t, e) {
			n.dispatch.Send(t.name, e)
		}
	}
}

// concerns: a changed leader concerns the targets of all the lock's jobs.
func (n *Notifications) concerns(t audience, e notify.Event) bool {
	switch {
	case len(t.jobs) == 0:
		return true
	case e.Job != "":
		return slices.Contains(t.jobs, e.Job)
	}
	return slices.ContainsFunc(t.jobs, func(name string) bool {
		j := n.jobs[name]
		return j != nil && j.lock == e.LockKey
	})
}

// won reports that this node leads: after from, whose term ended by why.
func (n *Notifications) won(lockKey string, epoch int64, from, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send(notify.Event{
		Kind: notify.LeaderChanged, LockKey: lockKey, Epoch: epoch, From: from, Reason: why,
		Text: leaderText(n.nodeID, lockKey, from, why),
	})
}

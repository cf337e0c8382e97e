// Package alert decides which events result in a notification, and formulates the text: the leader has changed, or a job has failed, is
// late or has recovered. Package notify delivers the notifications.
//
// [Notifications] belong to the node. For each job they store the state that decides the next report: the consecutive failures, the
// lateness, and the dead letters that were reported. At the beginning of a term this state is unknown. So the leader first reads the ledger
// and the history of the election, and keeps runs that end in the meantime until it has read them.
//
// The rules: the first failure and the recovery are reported immediately. Repeated failures, missed slots and dead letters are reported at
// growing or fixed intervals. An event is rather reported twice than not at all. So if the previous leader has crashed, the next leader
// assumes that it has reported nothing. Candidacies and runs never wait for a report.
//
// The failures:
//
//   - If Redis does not answer at the beginning of a term, the leader asks again every second and keeps the runs that end. If the term ends
//     before Redis answers, the leader reports these runs without the state.
//   - If a node dies with events in its queues, these events are lost. The next leader finds jobs that fail or are late in the ledger, and
//     reports them.
//   - If the configuration is reloaded, a job keeps its state if its name and its lock are unchanged.
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
	// farewell is the time for deliveries when the daemon ends, after it has released its locks.
	farewell = 2 * time.Second
	// pingTimeout and pingGiveUpAfter limit the requests to a dead man's switch. A request is repeated until the job's next success, but a
	// sign of life that arrives much too late is useless.
	pingTimeout     = 10 * time.Second
	pingGiveUpAfter = 10 * time.Minute
)

// Notifications send the events that the configuration selects. They belong to the node. The node's candidacies report events to them, and
// do not wait.
type Notifications struct {
	log      *zap.Logger
	nodeID   string
	dispatch *notify.Dispatcher
	metrics  Metrics
	newID    func() (string, error) // makes the ID of an event

	mu      sync.Mutex
	targets []audience
	jobs    map[string]*reportedJob
	misses  map[missKey]*missWindow
	epochs  map[string]int64 // the epoch of the last term, by lock key
}

// audience is a target, with the events that the target receives.
type audience struct {
	name string
	on   []string
	jobs []string // empty means all jobs
}

// Metrics count the outcomes of deliveries.
type Metrics interface {
	AddTargets(names ...string)
	Notified(target, outcome string, events int)
}

// New returns Notifications that deliver nothing until Reload names the targets.
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

// Reload changes the configuration. Events that wait for a target are kept if the new configuration has a target with the same name.
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

// routeOf returns the route of events to a target. Errors quote the output of a command, but without the secrets that the function known
// returns.
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

// commandEnv returns the daemon's environment without the variables that systemd sets for the daemon, and without the variables for the
// daemon's traces.
func commandEnv(all []string) []string {
	return slices.DeleteFunc(all, func(v string) bool {
		name, _, _ := strings.Cut(v, "=")
		ofSystemd := []string{"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC", "LISTEN_FDS", "LISTEN_PID", "LISTEN_FDNAMES"}
		return slices.Contains(ofSystemd, name) || strings.HasPrefix(name, "OTEL_")
	})
}

// pingName returns the name of a job's dead man's switch in logs and metrics. No target of the configuration can have this name, because it
// contains a slash.
func pingName(job string) string { return "dead_mans_switch/" + job }

// Close delivers queued events for at most two more seconds. The caller must have released the locks, so that no other node waits for this
// node.
func (n *Notifications) Close(ctx context.Context) {
	n.mu.Lock()
	n.reportMissed()
	n.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	n.dispatch.Close(ctx)
}

// hasTargets reports whether there are any targets.
func (n *Notifications) hasTargets() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.targets) > 0
}

// send queues an event for all targets that the event concerns. The caller holds n.mu.
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
	if id, err := n.newID(); err == nil { // the event is sent even without an ID
		e.ID = id
	}
	for _, t := range n.targets {
		if slices.Contains(t.on, string(e.Kind)) && n.concerns(t, e) {
			n.dispatch.Send(t.name, e)
		}
	}
}

// concerns reports whether an event concerns an audience, which is a target with its events. A new leader concerns the targets of all jobs
// under the leader's lock.
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

// won reports that this node leads. The parameter from names the previous leader, and the parameter why is the reason for the end of that
// leader's term.
func (n *Notifications) won(lockKey string, epoch int64, from, why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.send(notify.Event{
		Kind: notify.LeaderChanged, LockKey: lockKey, Epoch: epoch, From: from, Reason: why,
		Text: leaderText(n.nodeID, lockKey, from, why),
	})
}

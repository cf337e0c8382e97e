// Package abdication ends the term of a leader that reaches Redis but not the databases of its jobs, so that another node can try.
//
//	         a database is silent for abdicate_after,
//	         and another node may lead
//	leading ─────────────────────────────────────────► cooling down
//	   ▲                                                    │ the time is over and the databases answer,
//	   └───── campaigns again ◄─────────────────────────────┘ or no node leads
//
// [Abdicator] decides. Watch runs in a term and pings the databases over its own connections. ComeBack runs beside the election and
// ends the cool-down. [CoolDown] says to the rest of the node until when the node cools down.
//
// The invariants:
//
//   - A node abdicates only if there is another candidate that is not cooling down. So if no node reaches the database, one of the nodes
//     continues to lead, and the lead does not move in a circle.
//   - Another abdication soon after a cool-down doubles the next cool-down, up to a limit.
//   - The other nodes read the cool-down in Redis. If a node cannot read the cool-down, it only lacks this information, because no
//     decision depends on it.
//
// Failures: if the election cannot be read, the leader stays. If no other node takes the lead, the node campaigns before its cool-down
// ends, because a leader without its database is better than none.
package abdication

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"baton/internal/config"
	"baton/internal/daemon/site"
	"baton/internal/elector"
	"baton/internal/text"

	"go.uber.org/zap"
)

const (
	// longestCoolDown limits the minimum length of a cool-down, however often the node abdicates.
	longestCoolDown = 5 * time.Minute
	// untilCalled is longer than any outage, because awaitCoolDown ends the cool-down of a node that has abdicated.
	untilCalled = 365 * 24 * time.Hour
	// soonAgain is a time after a cool-down. Another abdication during this time counts as the same trouble, so that the next cool-down is
	// twice as long.
	soonAgain = 10 * time.Minute
)

// pinger is the part of a database that checks whether the database answers.
type pinger interface {
	Ping(ctx context.Context) error
}

// Abdicator ends the term of a leader that reaches Redis but not a database that its jobs write to, if another node may try. The node
// leaves the lead to others for a cool-down, and then until it reaches its databases again. A leader stays if all other candidates are
// cooling down. Otherwise the lead would move from node to node, and each move would end all runs. A database that fails repeatedly makes
// the cool-downs longer.
type Abdicator struct {
	nodeID      string
	after       time.Duration // election.abdicate_after
	poll        time.Duration
	election    site.Election
	coolDown    *CoolDown
	log         *zap.Logger
	abdications chan abdicated // receives each abdication when it has begun

	mu        sync.Mutex
	databases map[string]pinger // of the jobs in force

	// The fields below may only be used in the running term.
	last time.Time     // the last abdication
	cool time.Duration // the cool-down of the last abdication; 0: none yet
}

// abdicated says why a node cools down, and for how long at least. over is closed when the cool-down has ended.
type abdicated struct {
	lasts  time.Duration
	reason string
	over   chan struct{}
}

// New returns the abdicator of a node. It records the node's cool-downs in coolDown.
func New(c config.Config, probes site.Databases, e site.Election, coolDown *CoolDown, log *zap.Logger) *Abdicator {
	a := &Abdicator{
		nodeID: c.Node.ID, after: c.Election.AbdicateAfter, poll: c.Election.PollInterval,
		election: e, coolDown: coolDown, log: log, abdications: make(chan abdicated, 1),
	}
	a.Use(probes, c)
	return a
}

// Use sets the databases to watch, which are the databases that the configuration's jobs write to. It does not disturb a running Watch.
func (a *Abdicator) Use(probes site.Databases, c config.Config) {
	used := map[string]pinger{}
	for _, j := range c.Jobs {
		if db, ok := probes[j.Flush.To.Database]; ok {
			used[j.Flush.To.Database] = db
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.databases = used
}

func (a *Abdicator) used() map[string]pinger {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.databases
}

// OpenProbes opens the databases of the jobs a second time, so that a database whose connections are all used by jobs does not seem to
// be away. Databases in a file are left out, because they have no connection that could be lost. OpenProbes does not connect yet.
func OpenProbes(c config.Config) (site.Databases, error) {
	used := map[string]config.Database{}
	for _, j := range c.Jobs {
		if d, ok := c.Databases[j.Flush.To.Database]; ok && d.Driver != "sqlite" {
			used[j.Flush.To.Database] = d
		}
	}
	c.Databases = used
	return site.OpenDatabases(c)
}

// pace returns the interval between two checks of the databases.
func (a *Abdicator) pace() time.Duration {
	return min(max(a.after/6, 200*time.Millisecond), 5*time.Second)
}

// Watch returns nil when ctx ends, or an Abdication when this node must let other nodes lead.
func (a *Abdicator) Watch(ctx context.Context) *elector.Abdication {
	if a.cool > 0 {
		a.note(ctx, 0, "") // the node leads again
	}
	databases := a.used()
	if len(databases) == 0 {
		return nil
	}
	reached := map[string]time.Time{}
	for name := range databases {
		reached[name] = time.Now()
	}
	warned := false
	ticker := time.NewTicker(a.pace())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		a.ask(ctx, databases, reached)
		name, silent := a.silent(reached)
		switch {
		case ctx.Err() != nil:
			return nil
		case name == "":
			warned = false
		case a.alone(ctx):
			if !warned {
				a.log.Warn("a database does not answer, and no other node can take over: this node goes on leading",
					zap.String("database", name), zap.Duration("for", silent.Round(100*time.Millisecond)))
			}
			warned = true
		default:
			return a.abdicate(ctx, fmt.Sprintf("database %q has not answered here for %v, while redis does", name, text.Duration(silent)))
		}
	}
}

// ask asks every database for an answer. If a database answers, ask records the time in reached.
func (a *Abdicator) ask(ctx context.Context, databases map[string]pinger, reached map[string]time.Time) {
	ctx, cancel := context.WithTimeout(ctx, a.pace())
	defer cancel()
	var mu sync.Mutex
	var wg sync.WaitGroup
	for name, db := range databases {
		wg.Go(func() {
			if err := db.Ping(ctx); err != nil {
				a.log.Debug("a database does not answer", zap.String("database", name), zap.Error(err))
				return
			}
			mu.Lock()
			defer mu.Unlock()
			reached[name] = time.Now()
		})
	}
	wg.Wait()
}

// silent returns the first database that has been away for too long, and how long it has been away.
func (a *Abdicator) silent(reached map[string]time.Time) (string, time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		if away := time.Since(reached[name]); away >= a.after {
			return name, away
		}
	}
	return "", 0
}

// alone reports whether no other node could lead now. A node in its cool-down does not count, because it has already tried. alone also
// returns true if the election cannot be read.
func (a *Abdicator) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	p, err := a.election.State(ctx, 0)
	if err != nil {
		return true // the election has another problem
	}
	for _, n := range p.Candidates() {
		if _, coolsDown := p.CoolDowns[n.ID]; n.ID != a.nodeID && !coolsDown {
			return false
		}
	}
	return true
}

func (a *Abdicator) abdicate(ctx context.Context, reason string) *elector.Abdication {
	if again := a.cool > 0 && time.Since(a.last) < a.cool+soonAgain; again {
		a.cool = min(2*a.cool, max(longestCoolDown, a.after))
	} else {
		a.cool = a.after
	}
	a.last = time.Now()
	a.log.Warn("abdicating, so that another node can try", zap.String("reason", reason), zap.Duration("cool_down", a.cool))
	a.note(ctx, a.cool, reason)
	a.coolDown.Begin(a.cool, reason)
	c := abdicated{lasts: a.cool, reason: reason, over: make(chan struct{})}
	select {
	case <-a.abdications: // nothing waits for the previous abdication any more, because its term is over
	default:
	}
	a.abdications <- c
	return &elector.Abdication{Reason: reason, CoolDown: untilCalled, Over: c.over}
}

// note informs the other nodes how long this node cools down. A duration of 0 means that the cool-down is over.
func (a *Abdicator) note(ctx context.Context, d time.Duration, reason string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := a.election.SetCoolDown(ctx, a.nodeID, d, reason); err != nil {
		a.log.Debug("cannot tell the other nodes that this node stands aside", zap.Error(err))
	}
}

// ComeBack ends cool-downs until ctx ends.
func (a *Abdicator) ComeBack(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-a.abdications:
			if why := a.awaitCoolDown(ctx, c); why != "" {
				a.log.Info("campaigning again after an abdication", zap.String("reason", why))
				a.coolDown.End()
				a.note(ctx, 0, "")
				close(c.over)
			}
		}
	}
}

// awaitCoolDown waits until this node may lead again, and returns the reason, or "" if ctx ends first. The node may lead when the
// cool-down is over and its databases answer. It may lead immediately if no other node leads, because the other nodes may have died
// since, and a leader without its database is better than none.
func (a *Abdicator) awaitCoolDown(ctx context.Context, c abdicated) string {
	sitting, cancel := context.WithCancel(ctx)
	defer cancel()
	vacant := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		if a.vacant(sitting) {
			close(vacant)
		}
	})
	defer wg.Wait()
	defer cancel() // first
	began, noted := time.Now(), time.Now()
	ticker := time.NewTicker(a.pace())
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ""
		case <-vacant:
			return "no other node leads"
		case <-ticker.C:
		}
		if time.Since(began) >= c.lasts && a.reachesAll(ctx) {
			return "its databases answer here again"
		}
		if time.Since(noted) >= c.lasts/2 {
			noted = time.Now()
			a.note(ctx, c.lasts, c.reason)
			a.coolDown.Begin(c.lasts, c.reason)
		}
	}
}

// reachesAll reports whether every database answers.
func (a *Abdicator) reachesAll(ctx context.Context) bool {
	databases := a.used()
	reached := map[string]time.Time{}
	a.ask(ctx, databases, reached)
	return len(reached) == len(databases)
}

// vacant waits until two successive readings show that no node leads, although a node may lead. One reading is not enough, because the
// lock may just be passing from one leader to the next. It returns false if ctx ends first.
func (a *Abdicator) vacant(ctx context.Context) bool {
	ticker := time.NewTicker(a.poll)
	defer ticker.Stop()
	for vacancies := 0; vacancies < 2; {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
		attempt, cancel := context.WithTimeout(ctx, time.Second)
		p, err := a.election.State(attempt, 0)
		cancel()
		if vacancies++; err != nil || p.Owner != "" || p.Paused != nil || p.Quarantine > 0 {
			vacancies = 0
		}
	}
	return true
}

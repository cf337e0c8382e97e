// Package abdication ends the terms of a leader that does not reach its databases.
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
	// longestCoolDown bounds how long a node stands aside at least, however often it abdicates.
	longestCoolDown = 5 * time.Minute
	// untilCalled is longer than any outage: a node that abdicated stands aside until it is
	// called back, see awaitCoolDown.
	untilCalled = 365 * 24 * time.Hour
	// soonAgain is how long after a cool-down an abdication counts as another one of
	// the same trouble: the next cool-down is twice as long.
	soonAgain = 10 * time.Minute
)

// pinger is a database, as far as its presence is concerned.
type pinger interface {
	Ping(ctx context.Context) error
}

// Abdicator ends the term of a leader that reaches Redis but not a database that its
// jobs write to, if another node may try. It leaves the lead to others for a cool-down, and
// then until it reaches its databases again: that one may not reach them either, and is
// then the last to try, instead of the lead going round and ending every run with each move.
// A database that comes and goes makes the cool-downs grow.
type Abdicator struct {
	nodeID      string
	after       time.Duration // election.abdicate_after
	poll        time.Duration
	election    site.Election
	coolDown    *CoolDown
	log         *zap.Logger
	abdications chan abdicated // one has begun

	mu        sync.Mutex
	databases map[string]pinger // of the jobs in force

	// Of the running term alone:
	last time.Time     // the last abdication
	cool time.Duration // and its cool-down; 0: none yet
}

// abdicated is the minimum time for which a node stands aside, and the reason. over is closed
// when the node no longer stands aside.
type abdicated struct {
	lasts  time.Duration
	reason string
	over   chan struct{}
}

// New makes the abdicator of a node. It notes in coolDown when it stands aside.
func New(c config.Config, probes site.Databases, e site.Election, coolDown *CoolDown, log *zap.Logger) *Abdicator {
	a := &Abdicator{
		nodeID: c.Node.ID, after: c.Election.AbdicateAfter, poll: c.Election.PollInterval,
		election: e, coolDown: coolDown, log: log, abdications: make(chan abdicated, 1),
	}
	a.Use(probes, c)
	return a
}

// Use says which databases matter: those that the configuration's jobs write to. A watch
// that goes on does not mind.
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

// OpenProbes opens the databases that jobs write to a second time, so that jobs
// which use all connections are not taken for a database that is away. A file has no
// connection to lose. It connects to nothing yet.
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

// pace is the interval between two checks of the databases.
func (a *Abdicator) pace() time.Duration {
	return min(max(a.after/6, 200*time.Millisecond), 5*time.Second)
}

// Watch returns when ctx ends, with nil, or when this node must let others lead.
func (a *Abdicator) Watch(ctx context.Context) *elector.Abdication {
	if a.cool > 0 {
		a.note(ctx, 0, "") // it leads again
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
				a.log.Warn("a database is away, and no other node is there to try: going on",
					zap.String("database", name), zap.Duration("for", silent.Round(100*time.Millisecond)))
			}
			warned = true
		default:
			return a.abdicate(ctx, fmt.Sprintf("database %q has not answered here for %v, while redis does", name, text.Duration(silent)))
		}
	}
}

// ask asks every database whether it is there, and notes when it last was.
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

// silent is the first database that has been away for too long, and how long.
func (a *Abdicator) silent(reached map[string]time.Time) (string, time.Duration) {
	for _, name := range slices.Sorted(maps.Keys(reached)) {
		if away := time.Since(reached[name]); away >= a.after {
			return name, away
		}
	}
	return "", 0
}

// alone reports whether no other node could lead now: one that stands aside has
// tried already.
func (a *Abdicator) alone(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	p, err := a.election.Picture(ctx, 0)
	if err != nil {
		return true // the election has other troubles
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
	a.log.Warn("abdicating: another node may try", zap.String("reason", reason), zap.Duration("cool_down", a.cool))
	a.note(ctx, a.cool, reason)
	a.coolDown.Begin(a.cool, reason)
	c := abdicated{lasts: a.cool, reason: reason, over: make(chan struct{})}
	select {
	case <-a.abdications: // the one before is not waited for: its term is over
	default:
	}
	a.abdications <- c
	return &elector.Abdication{Reason: reason, CoolDown: untilCalled, Over: c.over}
}

// note informs the others how long this node stands aside.
func (a *Abdicator) note(ctx context.Context, d time.Duration, reason string) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	if err := a.election.SetCoolDown(ctx, a.nodeID, d, reason); err != nil {
		a.log.Debug("the others do not know that this node stands aside", zap.Error(err))
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

// awaitCoolDown waits until this node may lead again, and says why; "" if ctx ends first. That is
// when the cool-down is over and the databases answer here; or at once if no other node
// leads: the other nodes may have died meanwhile, and a leader without its database is
// better than none.
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

// vacant waits until no node leads at two readings in a row, although one may: at one
// alone the lock may be on its way from one to the other. False if ctx ends first.
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
		p, err := a.election.Picture(attempt, 0)
		cancel()
		if vacancies++; err != nil || p.Owner != "" || p.Paused != nil || p.Quarantine > 0 {
			vacancies = 0
		}
	}
	return true
}

package direct

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
)

// lettersIdle is how long the connections for dead letters stay open without a request. Pages ask every few seconds, so without this time
// each request would cost the databases a new login.
const lettersIdle = 45 * time.Second

// letterPool keeps the connections for dead letters open while there are requests, and closes them some time after the last request. Jobs
// use other connections, so that a page never makes a flush wait.
type letterPool struct {
	log *zap.Logger

	mu     sync.Mutex
	open   *pooledDead // nil: no connections are open
	closed bool
}

// pooledDead contains the connections for one edition (version) of the configuration, and the number of their users.
type pooledDead struct {
	dead    *deadLetters
	edition int // the edition of the configuration
	users   int
	last    bool // the pool gives the connections to no further caller
	idle    *time.Timer
}

// take opens connections for a configuration, or reuses connections of the same edition. Each configuration has its own edition. The caller
// must call the function leave in the end.
func (p *letterPool) take(c config.Config, edition int) (d *deadLetters, leave func(), err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.open != nil && p.open.edition < edition {
		p.retire()
	}
	entry := p.open
	if entry == nil || entry.edition != edition {
		dead, err := openDead(c)
		if err != nil {
			return nil, nil, err
		}
		entry = &pooledDead{dead: dead, edition: edition, last: p.closed || p.open != nil}
		if !entry.last {
			p.open = entry
		}
	}
	entry.users++
	if entry.idle != nil {
		entry.idle.Stop()
	}
	// The caller gets its own cache for the tables of jobs, because an operator may be changing the tables.
	own := *entry.dead
	own.jobs = map[string]*replayer{}
	return &own, sync.OnceFunc(func() { p.leave(entry) }), nil
}

func (p *letterPool) leave(entry *pooledDead) {
	p.mu.Lock()
	defer p.mu.Unlock()
	entry.users--
	switch {
	case entry.users > 0:
	case entry.last:
		p.shut(entry)
	default:
		entry.idle = time.AfterFunc(lettersIdle, func() {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.open == entry && entry.users == 0 {
				p.retire()
			}
		})
	}
}

// retire takes the open connections out of use, and closes them as soon as they have no users. The caller holds p.mu.
func (p *letterPool) retire() {
	entry := p.open
	if entry == nil {
		return
	}
	p.open, entry.last = nil, true
	if entry.idle != nil {
		entry.idle.Stop()
	}
	if entry.users == 0 {
		p.shut(entry)
	}
}

func (p *letterPool) shut(entry *pooledDead) {
	if err := entry.dead.close(); err != nil {
		p.log.Warn("cannot close the databases of dead letters", zap.Error(err))
	}
}

// close closes the pool. Connections in use are closed when their last user leaves.
func (p *letterPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.retire()
}

package direct

import (
	"sync"
	"time"

	"go.uber.org/zap"

	"baton/internal/config"
)

// lettersIdle is how long the connections for dead letters stay open without a request. Pages ask every few seconds: to connect each time
// would cost the databases a sign-in each time.
const lettersIdle = 45 * time.Second

// letterPool keeps the connections for dead letters open while requests come, and closes them some time after. Jobs use other
// connections: no page makes a flush wait.
type letterPool struct {
	log *zap.Logger

	mu     sync.Mutex
	open   *pooledDead // nil: no connections are open
	closed bool
}

// pooledDead are the connections for one edition of the configuration, and the count of their users.
type pooledDead struct {
	dead    *deadLetters
	edition int // of the configuration that they are for
	users   int
	last    bool // no other caller gets them
	idle    *time.Timer
}

// take opens connections for a configuration, or reuses those of the same edition. An edition is of one configuration. The caller must
// call leave in the end.
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
	// The caller gets a cache of its own for the tables of jobs: an operator may be changing them.
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

// retire closes the open connections as soon as no caller uses them. The caller holds p.mu.
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
		p.log.Warn("closing databases of dead letters", zap.Error(err))
	}
}

// close ends it. Connections in use are closed when their last user leaves.
func (p *letterPool) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.retire()
}

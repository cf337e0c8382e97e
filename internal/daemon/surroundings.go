package daemon

import (
	"context"
	"math/rand/v2"
	"time"

	"baton/internal/redisstore"
	"baton/internal/status"
)

const (
	// lookEvery is how often a node looks at an election for its metrics, whoever leads:
	// nodes that are gone show within a minute or so, which is what it takes to be called gone.
	lookEvery = 30 * time.Second
	// scrapedWithin is since when somebody must have asked for them: a standby whose
	// metrics nobody reads does not look.
	scrapedWithin = 3 * time.Minute
)

// lookAround keeps the metrics of what is around the node until ctx ends. What cannot be
// read stays as it was: redis_up tells that.
func (c *candidacy) lookAround(ctx context.Context) {
	var last time.Time
	// Not all nodes, and not all locks of one, at the same moment.
	for rest(ctx, c.timing.HeartbeatInterval/2+rand.N(c.timing.HeartbeatInterval)) == nil {
		if time.Since(last) < lookEvery || time.Since(c.metrics.Scraped()) > scrapedWithin {
			continue
		}
		last = time.Now()
		c.lookOnce(ctx)
	}
}

func (c *candidacy) lookOnce(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, c.timing.AttemptTimeout)
	defer cancel()
	asked := time.Now()
	p, err := c.election.Picture(ctx, 0)
	if err == nil {
		c.told.Sees(surroundings(p, asked, time.Now()))
	}
}

// surroundings are what a picture shows that was asked for and came at those times: it is
// dated in between.
func surroundings(p redisstore.Picture, asked, came time.Time) status.Surroundings {
	s := status.Surroundings{Paused: p.Paused != nil, Offset: p.Now.Sub(asked.Add(came.Sub(asked) / 2))}
	for _, n := range p.Nodes {
		switch ago := p.Now.Sub(n.Seen()); {
		case ago > forgottenAfter:
		case ago > goneAfter:
			s.Gone++
		default:
			s.Live++
			if drifts(n, p) {
				s.Drifted++
			}
		}
	}
	return s
}

package daemon

import (
	"context"
	"math/rand/v2"
	"time"

	"baton/internal/redisstore"
	"baton/internal/status"
)

// lookEvery is how often a node looks at an election for its metrics, whoever leads:
// nodes that are gone show within a minute or so, which is what it takes to be called gone.
const lookEvery = 30 * time.Second

// lookAround keeps the metrics of what is around the node until ctx ends. What cannot be
// read stays as it was: redis_up tells that.
func (c *candidacy) lookAround(ctx context.Context) {
	// Not all nodes, and not all locks of one, at the same moment.
	wait := c.timing.HeartbeatInterval + rand.N(c.timing.HeartbeatInterval)
	for rest(ctx, wait) == nil {
		wait = lookEvery + rand.N(lookEvery/10)
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

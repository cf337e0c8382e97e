package metrics

import "time"

// Surroundings is a node's view of an election.
type Surroundings struct {
	Live    int           // the number of live nodes
	Silent  int           // the number of nodes that have not registered recently and have not shut down
	Drifted int           // the number of live nodes whose configuration differs from the leader's
	Paused  bool          // an operator has paused the election
	Offset  time.Duration // how far Redis' clock is ahead of this host's clock
}

// Sees reports this node's view of the election, as leader or as standby.
func (e *Election) Sees(s Surroundings) {
	e.metrics.nodes.WithLabelValues(e.lock, "live").Set(float64(s.Live))
	e.metrics.nodes.WithLabelValues(e.lock, "silent").Set(float64(s.Silent))
	e.metrics.drifted.WithLabelValues(e.lock).Set(float64(s.Drifted))
	e.metrics.paused.WithLabelValues(e.lock).Set(truth(s.Paused))
	e.metrics.clockOffset.WithLabelValues(e.lock).Set(s.Offset.Seconds())
}

// Redis reports whether Redis serves the election.
func (e *Election) Redis(up bool) { e.metrics.redisUp.WithLabelValues(e.lock).Set(truth(up)) }

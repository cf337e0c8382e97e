package redisconn

import "time"

// Pace decides how many records one request to Redis asks for. Redis serves no other client during a command, and a reply lies whole in
// its memory and in ours: so Pace uses the bytes and the time of earlier replies, never a number alone.
//
// It begins with one record, since the size of records and the distance of Redis are unknown. It asks for four times as many until a
// reply was too large, or took too long. That halves the next request, or shortens it further; from then on requests grow by a half. A
// large record is rarely the only one: Pace remembers its size for a while.
type Pace struct {
	most    int // records, never more
	bytes   int // the aim for the bytes of one reply
	depth   int
	limited bool          // it has met a limit
	largest int           // bytes of a record, lately
	trip    time.Duration // the shortest time of a reply: that of the network, or more
}

const (
	// leastTimed is how many records a request may have however long it takes: with so few records the network takes the time, or another
	// program has the processor. Up to there the steps of a small flush do not depend on time.
	leastTimed = 64
	// aimTime is how much of Redis' time one command may take.
	aimTime = 2 * time.Millisecond
	// manyLarge is how many times the aim a reply may have if all its records are as large as the largest one lately.
	manyLarge = 4
	// forget is the part of the largest record's size that each reply removes from memory.
	forget = 32
)

// NewPace asks for at most that many records, and aims at that many bytes.
func NewPace(most, bytes int) Pace {
	return Pace{most: most, bytes: bytes, depth: 1}
}

// From begins with that many records, for callers that know the size of records.
func (p Pace) From(depth int) Pace {
	p.depth = min(depth, p.most)
	return p
}

// Depth is how many records to ask for.
func (p *Pace) Depth() int { return p.depth }

// Paced describes a reply.
type Paced struct {
	Records, Bytes int
	Largest        int // bytes of a record
	// Took is the time from the request to the beginning of its answer; 0 where no command of it can take long, for any number of
	// records.
	Took time.Duration
}

// Learn adapts the depth to a reply.
func (p *Pace) Learn(r Paced) {
	grown := 4 * p.depth
	if p.limited {
		grown = p.depth + p.depth/2 + 1
	}
	next := grown
	if r.Took > 0 {
		if p.trip == 0 || r.Took < p.trip {
			p.trip = r.Took
		}
		if r.Took-p.trip > aimTime && p.depth >= leastTimed {
			next = max(p.depth/2, leastTimed)
		}
	}
	if r.Bytes > 0 {
		next = min(next, p.bytes*max(1, r.Records)/r.Bytes)
	}
	p.largest = max(r.Largest, p.largest-(p.largest+forget-1)/forget)
	if p.largest > 0 {
		next = min(next, manyLarge*p.bytes/p.largest)
	}
	p.limited = p.limited || next < grown
	p.depth = max(1, min(next, p.most))
}

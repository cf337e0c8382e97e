package redisconn

import "time"

// Pace decides how many records one request to Redis asks for. Redis serves no other client during a command, and Redis and baton both
// keep a whole reply in memory. So Pace decides by the bytes and the time of earlier replies, and not only by a number of records.
//
// Pace begins with one record, because it does not know the size of the records and the time of a round trip to Redis. After each
// reply it asks for four times as many records, until a reply was too large or took too long. Then it asks for half as many or
// fewer, and from then on the number grows by half. Large records often come together, so Pace remembers the size of a large record
// for a while.
type Pace struct {
	most    int // the maximum number of records
	bytes   int // the intended size of one reply, in bytes
	depth   int
	limited bool          // a reply was too large or took too long
	largest int           // the size of the largest recent record, in bytes
	trip    time.Duration // the shortest time of a reply so far, which is at least the time of the network
}

const (
	// leastTimed is the number of records that a request may always ask for, however long a reply takes. With so few records, a
	// reply is slow only because of the network, or because another program uses the processor. So the steps of a small flush do not
	// depend on time.
	leastTimed = 64
	// aimTime is the time that one command should take in Redis at most.
	aimTime = 2 * time.Millisecond
	// manyLarge is the maximum size of a reply, in multiples of the intended size, if all of its records are as large as the largest
	// recent record.
	manyLarge = 4
	// forget is the speed at which the remembered size of the largest record decreases: by 1/forget with each reply.
	forget = 32
)

// NewPace returns a Pace. The argument most is the maximum number of records that one request asks for. The argument bytes is the intended
// size of a reply.
func NewPace(most, bytes int) Pace {
	return Pace{most: most, bytes: bytes, depth: 1}
}

// From returns a Pace whose first request asks for a given number of records, the argument depth. Callers that know the size of the
// records use it.
func (p Pace) From(depth int) Pace {
	p.depth = min(depth, p.most)
	return p
}

// Depth returns how many records to ask for.
func (p *Pace) Depth() int { return p.depth }

// Paced describes a reply, so that a [Pace] can learn from it.
type Paced struct {
	Records, Bytes int
	Largest        int // the size of the largest record, in bytes
	// Took is the time from the request to the beginning of its answer. It is 0 if the commands are fast for any number of records.
	Took time.Duration
}

// Learn adapts the number of records per request to the size and the time of a reply.
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

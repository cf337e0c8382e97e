package redisconn

import "time"

// Pace says how many records to ask Redis for at once. Redis serves nobody else while it works
// at a command, and a reply lies whole in its memory and in ours: so it goes by the bytes and
// the time of the replies before, never by a number alone.
//
// It begins with one record, for nobody knows yet how large they are, or how far away Redis
// is, and asks for four times as many until a reply was too large, or took too long. That makes
// the next one half as long, or shorter; from then on it grows by a half. A large record is rarely
// the only one: it is remembered for a while.
type Pace struct {
	most    int // records, never more
	bytes   int // the aim for what is asked for at once
	depth   int
	limited bool          // it has met a limit
	largest int           // bytes of a record, of late
	trip    time.Duration // the shortest time of a reply: that of the way, if not less
}

const (
	// leastTimed is as many as are asked for however long that takes: with so few it is the
	// way that takes long, or another program has the processor. Up to there the steps of a
	// small flush do not depend on time.
	leastTimed = 64
	// aimTime is what a command of ours may take of Redis' time.
	aimTime = 2 * time.Millisecond
	// manyLarge is how many times the aim a reply may have if all its records are as large as
	// the largest of late.
	manyLarge = 4
	// forget is the part of the largest record that each reply makes forgotten.
	forget = 32
)

// NewPace asks for so many records at most, and aims at so many bytes.
func NewPace(most, bytes int) Pace {
	return Pace{most: most, bytes: bytes, depth: 1}
}

// From begins with so many records, for who knows how large they are.
func (p Pace) From(depth int) Pace {
	p.depth = min(depth, p.most)
	return p
}

// Depth is how many records to ask for.
func (p *Pace) Depth() int { return p.depth }

// Paced is what a reply was like.
type Paced struct {
	Records, Bytes int
	Largest        int // bytes of a record
	// Took is the time from the question to the beginning of its answer; 0 where no command
	// of it can take long, however many records there are.
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

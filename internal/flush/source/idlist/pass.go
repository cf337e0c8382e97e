package idlist

import (
	"context"
	"math"
)

// growth is how many ids of the next list are collected for each used id of this one.
const growth = 2

// Pass collects the ids of a pass in several lists, and uses one while it collects the next one. The first list is
// small, so that the database has something to do soon, and each one is longer than the one before: the more ids
// are sorted together, the closer to each other are the rows of a page.
type Pass struct {
	// Page is how many ids a page of each lane has, Lanes the number of lanes, and Group how many ids are used at once.
	Page, Lanes, Group int
	// Budget is the maximum size of two lists together, in bytes.
	Budget int
	// About is the most ids that there may be, or [Unknown].
	About int64
	// Collect adds ids to the list until it has that many, or is [List.Full] for the budget, or the pass is over. more is false with the
	// last ids.
	Collect func(ctx context.Context, ids *List, most, budget int) (more bool, err error)
	// Use uses ids of a lane, in their order.
	//
	// Collecting a little after each use keeps the database busy: a whole list takes longer than the pages that wait. Collecting while
	// the rows are read takes longer, too: Redis does one after the other, and a scan that waits for the rows counts as slow (see
	// redisconn.Pace), so that it asks for less each time.
	Use func(lane int, ids []string) error
}

// Run makes the pass.
func (p Pass) Run(ctx context.Context) error {
	pages := p.Page * p.Lanes
	ids := p.sized(pages)
	more, err := p.Collect(ctx, ids, pages, max(1, p.share()))
	if err != nil {
		return err
	}
	for {
		ids.Sort()
		next := &List{}
		if more {
			next = p.sized(growth*ids.Len() + pages)
			ids.cut(pages, next)
		}
		p.About -= int64(ids.Len())
		budget := max(1, p.Budget/4, min(p.Budget-ids.bytes(), p.share()))
		collect := func(n int) (err error) {
			if more && n > 0 && !next.Full(budget) {
				more, err = p.Collect(ctx, next, next.Len()+n, budget)
			}
			return err
		}
		if err := p.use(ids, collect); err != nil {
			return err
		}
		ids = next
		if err := collect(pages - next.Len()); err != nil {
			return err
		}
		if next.Len() == 0 && !more {
			return nil
		}
	}
}

// use uses a list and collects others meanwhile, unless two lists of such ids would be too much.
func (p Pass) use(ids *List, collect func(n int) error) error {
	each := growth
	if ids.long() {
		each = 0
	}
	for lane, group := range ids.Pages(p.Group, p.Lanes) {
		if err := p.Use(lane, group); err != nil {
			return err
		}
		if err := collect(each * len(group)); err != nil {
			return err
		}
	}
	return nil
}

// Unknown is About without a known number.
const Unknown = math.MaxInt64

// share is the part of the budget for one list.
func (p Pass) share() int { return p.Budget - p.Budget/4 }

// sized makes a list for that many ids, or for fewer if there are fewer.
func (p Pass) sized(n int) *List { return Sized(min(n, int(max(0, p.About)), p.share()/Cost)) }

// cut moves the ids of an incomplete last page to another list, if a complete one is before.
func (p *List) cut(page int, to *List) {
	whole := len(p.places) / page * page
	if whole == 0 || p.long() {
		return
	}
	for _, at := range p.places[whole:] {
		to.Add(p.id(at))
	}
	p.places = p.places[:whole]
}

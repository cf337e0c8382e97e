package idlist

import (
	"context"
	"math"
)

// growth is the number of ids that are added to the next list whenever one id of the present list has been used.
const growth = 2

// Pass collects the ids of a pass in several lists. It uses one list while it collects the next. The first list is small, so that the
// database soon has work. Each list is longer than the previous one, because the rows of a page are closer to each other if more ids are
// sorted together.
type Pass struct {
	// Page is the number of ids in a page of a lane, Lanes the number of lanes, and Group the number of ids that are used at a time.
	Page, Lanes, Group int
	// Budget is the maximum size of two lists together, in bytes.
	Budget int
	// About is the maximum number of ids, or [Unknown].
	About int64
	// Collect adds ids to the list. It stops when the list has as many ids as the argument most allows. It also stops when the list is
	// [List.Full] for the budget, or the pass is over. The result more is false if the pass is over.
	Collect func(ctx context.Context, ids *List, most, budget int) (more bool, err error)
	// Use reads the rows of some ids of a lane, in the order of the ids.
	//
	// After each call of Use, a few ids are collected, which keeps the database busy. If a whole list was collected at a time, that would
	// take longer than writing the pages that wait. If ids were collected while rows are read, that would also take longer. Redis runs one
	// command after the other, so a scan that waits for the rows would count as slow (see redisconn.Pace) and ask for fewer ids each time.
	Use func(lane int, ids []string) error
}

// Run runs the pass.
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

// use calls Use for all ids of a list, and after each call collects ids of the next list. It does not collect if the ids are long, because
// two lists of long ids need too much memory.
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

// Unknown is the value of Pass.About if the number of ids is not known.
const Unknown = math.MaxInt64

// share returns the part of the budget that one list may use.
func (p Pass) share() int { return p.Budget - p.Budget/4 }

// sized returns a list with room for n ids, or for the remaining ids if there are fewer.
func (p Pass) sized(n int) *List { return Sized(min(n, int(max(0, p.About)), p.share()/Cost)) }

// cut moves the ids of an incomplete last page to another list, if the list also has a complete page.
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

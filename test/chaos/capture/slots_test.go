package capture

import (
	"errors"
	"time"

	"baton/internal/testsupport"
	"baton/internal/testsupport/nemesis"
)

const (
	// changeWithin is how long a change of hands waits until the nodes agree; where a replica or a master is away for longer it
	// is given up.
	changeWithin = 20 * time.Second
	// restsFor is for how long a slot that has changed hands stays where it is: one that comes back within a second, without its
	// keys, is not noticed.
	restsFor = 10 * time.Second
	// keyEvery is how often a key is moved.
	keyEvery = 5 * time.Millisecond
)

// drawSlot draws a tag whose slot may change hands, and another master than its own. end is called when it has.
func (c *inCluster) drawSlot(draw uint64) (i int, to *testsupport.RedisDaemon, end func(), err error) {
	if !c.moving.TryLock() {
		return 0, nil, nil, errors.New("the last slot is on its way still")
	}
	v, err := c.daemon.View()
	if masters := v.Masters(); err == nil {
		to = masters[draw/hashTags%uint64(len(masters))]
	}
	for n := range uint64(hashTags) {
		i := int((draw + n) % hashTags)
		if err == nil && time.Since(c.touched[i]) > restsFor && to != v.Owners[c.slots[i]] {
			return i, to, func() {
				c.touched[i] = time.Now()
				c.moving.Unlock()
			}, nil
		}
	}
	c.moving.Unlock()
	return 0, nil, nil, errors.Join(errors.New("no slot may change hands now"), err)
}

// beginMove moves half of the keys of a slot until its end is called, and the rest then, or none.
func (c *inCluster) beginMove(f nemesis.Fault) (target string, end func()) {
	i, to, moved, err := c.drawSlot(f.Draw)
	if err != nil {
		return err.Error(), func() {}
	}
	tag, done := hashTag(i), make(chan struct{})
	c.lab.background.Go(func() {
		defer moved()
		m, err := c.moveHalf(tag, to, done)
		<-done
		if err == nil && f.Kind == slotMoves {
			err = c.change(m.Finish)
			c.lab.Add("the slot of %s has moved to %s: %v", tag, to.Addr(), err)
			if err == nil {
				return
			}
		}
		c.lab.Add("the move of %s is given up: %v", tag, err)
		c.lab.Add("it is mended: %v", c.change(func() error { return c.daemon.MendSlot(tag) }))
	})
	return tag + " to " + to.Addr(), func() { close(done) }
}

func (c *inCluster) moveHalf(tag string, to *testsupport.RedisDaemon, done <-chan struct{}) (*testsupport.SlotMove, error) {
	m, err := c.daemon.BeginMove(tag, to)
	if err != nil {
		return nil, err
	}
	keys, err := m.Keys(1000)
	if err != nil {
		return nil, err
	}
	for _, key := range keys[:len(keys)/2] {
		if err := m.MoveKeys(key); err != nil {
			return nil, err
		}
		select {
		case <-time.After(keyEvery):
		case <-done:
			return m, nil
		}
	}
	return m, nil
}

// give lets a slot change hands: taken without its keys, or moved whole by its servers.
func (c *inCluster) give(f nemesis.Fault, how string, do func(key string, to *testsupport.RedisDaemon) error) (target string) {
	i, to, given, err := c.drawSlot(f.Draw)
	if err != nil {
		return err.Error()
	}
	tag := hashTag(i)
	c.lab.background.Go(func() {
		defer given()
		c.lab.Add("the slot of %s %s %s: %v", tag, how, to.Addr(), c.change(func() error { return do(tag, to) }))
	})
	return tag + " to " + to.Addr()
}

// change lets a slot change hands when nothing else does: see changing. It returns once all have heard of it.
func (c *inCluster) change(do func() error) error {
	for until := time.Now().Add(changeWithin); ; time.Sleep(100 * time.Millisecond) {
		c.changing.Lock()
		err := c.daemon.NodesAgree()
		if err == nil {
			err = errors.Join(do(), c.agree())
			c.changing.Unlock()
			return err
		}
		c.changing.Unlock()
		if time.Now().After(until) {
			return err
		}
	}
}

// agree waits until all nodes have heard of a change.
func (c *inCluster) agree() error {
	for until := time.Now().Add(changeWithin); ; time.Sleep(100 * time.Millisecond) {
		if err := c.daemon.NodesAgree(); err == nil || time.Now().After(until) {
			return err
		}
	}
}

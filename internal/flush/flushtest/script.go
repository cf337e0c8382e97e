package flushtest

import (
	"context"
	"slices"
	"sync"

	"baton/internal/flush"
)

// Script is a source that delivers the same given pages at every reading. It is for tests of a pipeline that need a source which breaks the
// rules of flush.Source. The fakes of real sources keep these rules, so such tests cannot use them.
type Script struct {
	Shard string // the result of Name
	Job   string // the job that made its stages; see flush.Stage
	Note  string // the note of its stages
	// On, if set, is called before the source answers a call. The argument is "stage", "read", "done", "discard" or "backlog". During a
	// reading, On is also called with "page" before each page, and with "taken" after each page. If On returns an error, the source returns
	// that error.
	On func(call string) error

	mu    sync.Mutex
	pages []flush.Page
	calls []string
}

// NewScript returns a source that delivers these pages.
func NewScript(shard string, pages ...flush.Page) *Script {
	return &Script{Shard: shard, pages: pages}
}

// SetPages makes the source deliver these pages.
func (s *Script) SetPages(pages ...flush.Page) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pages = pages
}

// Calls returns the calls of Stage, Done and Discard.
func (s *Script) Calls() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.calls)
}

func (s *Script) on(call string) error {
	if s.On == nil {
		return nil
	}
	return s.On(call)
}

func (s *Script) changes(call string) error {
	s.mu.Lock()
	s.calls = append(s.calls, call)
	s.mu.Unlock()
	return s.on(call)
}

func (s *Script) now() []flush.Page {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pages
}

// Name implements flush.Source.
func (s *Script) Name() string { return s.Shard }

// Stage implements flush.Source. It finds a stage if there are pages.
func (s *Script) Stage(_ context.Context, newID, _ string) (flush.Stage, bool, error) {
	err := s.changes("stage")
	return flush.Stage{ID: newID, Job: s.Job, Note: s.Note}, len(s.now()) > 0, err
}

// Read implements flush.Source. It delivers all pages.
func (s *Script) Read(_ context.Context, _ flush.Stage, yield func(flush.Page) error) error {
	if err := s.on("read"); err != nil {
		return err
	}
	for _, p := range s.now() {
		if err := s.on("page"); err != nil {
			return err
		}
		if err := yield(p); err != nil {
			return err
		}
		if err := s.on("taken"); err != nil {
			return err
		}
	}
	return nil
}

// Done implements flush.Releaser. It removes nothing.
func (s *Script) Done(context.Context, flush.Stage, flush.Page) error { return s.changes("done") }

// Discard implements flush.Discarder. It removes nothing.
func (s *Script) Discard(context.Context, flush.Stage) error { return s.changes("discard") }

// Backlog implements flush.Counted. It returns the number of pages.
func (s *Script) Backlog(context.Context) (int64, error) {
	err := s.on("backlog")
	return int64(len(s.now())), err
}

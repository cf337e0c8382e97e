package redisconn

import (
	"errors"
	"io"
)

// Attached returns the object that the store keeps under this name. The object uses the store on its own until it is detached or the
// store is closed. The first call opens the object. If the store is closed already, Attached opens the object and closes it immediately,
// because no later call would close it.
func (s *Store) Attached(name string, open func() io.Closer) io.Closer {
	s.mu.Lock()
	defer s.mu.Unlock()
	if made, ok := s.attached[name]; ok {
		return made
	}
	made := open()
	if s.closed {
		_ = made.Close() // it has done nothing yet
		return made
	}
	if s.attached == nil {
		s.attached = map[string]io.Closer{}
	}
	s.attached[name] = made
	return made
}

// Attachment returns the object that Attached has opened under this name, or false if there is none.
func (s *Store) Attachment(name string) (io.Closer, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	made, ok := s.attached[name]
	return made, ok
}

// Detach closes the object that Attached has opened under this name. If there is no such object, Detach does nothing.
func (s *Store) Detach(name string) error {
	s.mu.Lock()
	made, ok := s.attached[name]
	delete(s.attached, name)
	s.mu.Unlock()
	if !ok {
		return nil
	}
	return made.Close()
}

// detachAll closes all objects that Attached has opened.
func (s *Store) detachAll() error {
	s.mu.Lock()
	all := s.attached
	s.attached, s.closed = nil, true
	s.mu.Unlock()
	var failed []error
	for _, made := range all {
		failed = append(failed, made.Close())
	}
	return errors.Join(failed...)
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"sync"

	"baton/test/linear/wire"
)

// diary is the node's history file.
type diary struct {
	mu   sync.Mutex
	file *os.File
}

func openDiary(path string) (*diary, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the history: %w", err)
	}
	return &diary{file: f}, nil
}

// write appends a line. If the write fails, the process ends, because a history with a missing line could make a correct lock look wrong.
func (d *diary) write(l wire.Line) {
	b, err := json.Marshal(l)
	if err == nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		_, err = d.file.Write(append(b, '\n'))
	}
	if err != nil {
		panic(fmt.Sprintf("write the history: %v", err))
	}
}

// floor stores the highest epoch that the node has seen, so that the epoch survives the process.
type floor struct {
	mu    sync.Mutex
	path  string
	epoch int64
}

func openFloor(path string) (*floor, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &floor{path: path}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read the highest epoch: %w", err)
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("read the highest epoch from %s: %w", path, err)
	}
	return &floor{path: path, epoch: n}, nil
}

func (f *floor) value() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.epoch
}

func (f *floor) lift(epoch int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if epoch <= f.epoch {
		return
	}
	f.epoch = epoch
	err := os.WriteFile(f.path+".new", []byte(strconv.FormatInt(epoch, 10)), 0o600)
	if err == nil {
		err = os.Rename(f.path+".new", f.path)
	}
	if err != nil {
		panic(fmt.Sprintf("keep the highest epoch: %v", err))
	}
}

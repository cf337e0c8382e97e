package slots

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"time"

	"baton/test/slots/wire"
)

// readStarts reads what commands have written down, in the order in which they began.
func readStarts(file string) ([]run, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var runs []run
	place := map[string]int{}
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var line wire.Line
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return nil, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		i, known := place[line.Run]
		switch {
		case line.Kind == wire.Begin: // again, if that is what happened
			r, err := runOf(line)
			if err != nil {
				return nil, err
			}
			place[line.Run] = len(runs)
			runs = append(runs, r)
		case !known:
			return nil, fmt.Errorf("line %q is of no run", lines.Text())
		case line.Kind == wire.End:
			runs[i].ended, runs[i].code = true, line.Code
			fallthrough
		default:
			runs[i].alive = max(runs[i].alive, time.Duration(line.Boot))
		}
	}
	return runs, lines.Err()
}

func runOf(l wire.Line) (run, error) {
	slot, err := parseSlot(l.Slot)
	if err != nil || l.Run == "" || l.Attempt == 0 || l.Epoch == 0 {
		return run{}, fmt.Errorf("a command was told too little: %+v", l)
	}
	r := run{
		job: l.Job, id: l.Run, node: l.Node, trigger: l.Trigger, lock: l.Lock, slot: slot, attempt: l.Attempt, epoch: l.Epoch,
		began: time.Duration(l.Boot), alive: time.Duration(l.Boot), at: time.Unix(0, l.Wall),
	}
	if r.lock == lockKey {
		r.lock = ""
	}
	return r, nil
}

// parseSlot reads a time as RFC 3339 or as milliseconds since 1970.
func parseSlot(text string) (time.Time, error) {
	if ms, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.UnixMilli(ms), nil
	}
	return time.Parse(time.RFC3339Nano, text)
}

package follow

import (
	"bytes"
	"context"
	"fmt"
	"strconv"
	"strings"
)

// resync joins the stream of a server that refuses to continue even from the end of its own history. It requests an RDB and skips
// it. The argument lost is the number of the caller's positions. None of these positions can be used any longer.
func resync(ctx context.Context, m Master, lost int) (*Stream, Joined, error) {
	h, err := shake(ctx, m)
	if err != nil {
		return nil, Joined{}, err
	}
	defer h.release()
	at, err := h.fullResync()
	if err != nil {
		_ = h.conn.Close()
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return nil, Joined{}, err
	}
	joined := Joined{Kind: Resynced, At: at, Backlog: h.info.backlogSize, Lost: make([]Loss, lost)}
	for i := range joined.Lost {
		joined.Lost[i] = Loss{LostBacklog, "the master cannot continue from any position, so it sent all its data"}
	}
	if lost > 0 {
		joined.Why = joined.Lost[0]
	}
	return newStream(h.reader, at), joined, nil
}

// fullResync requests all data, and returns the position that follows the data.
func (h *handshake) fullResync() (Position, error) {
	reply, err := h.psync("?", -1)
	if err != nil {
		return Position{}, err
	}
	answer := strings.Fields(reply)
	if len(answer) != 3 || answer[0] != "FULLRESYNC" {
		return Position{}, fmt.Errorf("%w: PSYNC was answered by %q; %s", ErrRefused, reply, remedyOfRefusal)
	}
	at := Position{ReplID: answer[1], DB: AnyDB}
	if at.Offset, err = strconv.ParseInt(answer[2], 10, 64); err != nil {
		return Position{}, fmt.Errorf("%w: PSYNC was answered by %q", ErrGarbled, reply)
	}
	return at, h.skipRDB()
}

// markSize is the length of the mark that ends an RDB. The server sends such a mark if it does not announce the size of the RDB.
const markSize = 40

// skipRDB skips an RDB, which has the form "$size\r\n…" or "$EOF:mark\r\n…mark". The server sends empty lines first, while it
// prepares the RDB.
func (h *handshake) skipRDB() error {
	var line []byte
	for len(line) == 0 {
		var err error
		if line, err = h.line(h.wait); err != nil {
			return fmt.Errorf("wait for the RDB: %w", err)
		}
	}
	text := string(line)
	mark, unknown := strings.CutPrefix(text, "$EOF:")
	if unknown && len(mark) == markSize {
		return h.skipUntil([]byte(mark))
	}
	size, err := strconv.ParseInt(strings.TrimPrefix(text, "$"), 10, 64)
	if err != nil || text[0] != '$' || size < 0 {
		return fmt.Errorf("%w: %q instead of an RDB", ErrGarbled, text)
	}
	for size > 0 {
		if h.r == h.w {
			if err := h.more(); err != nil {
				return err
			}
		}
		n := min(size, int64(h.w-h.r))
		h.r, size = h.r+int(n), size-n
		h.kept = h.r
	}
	return nil
}

// skipUntil skips all bytes up to and including a mark.
func (h *handshake) skipUntil(mark []byte) error {
	for {
		if i := bytes.Index(h.buf[h.r:h.w], mark); i >= 0 {
			h.r += i + len(mark)
			h.kept = h.r
			return nil
		}
		h.r = max(h.r, h.w-len(mark)+1) // the mark may begin in the last bytes
		h.kept = h.r
		if err := h.more(); err != nil {
			return err
		}
	}
}

func (h *handshake) more() error {
	if err := h.fill(deadlineIn(h.wait)); err != nil {
		return fmt.Errorf("read the RDB: %w", err)
	}
	return nil
}

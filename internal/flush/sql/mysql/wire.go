package mysql

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"baton/internal/flush/row"
)

// Commands, answers and capabilities of the protocol.
const (
	comStmtPrepare = 0x16
	comStmtExecute = 0x17
	comStmtClose   = 0x19

	answerOK    = 0x00
	answerError = 0xff

	clientCompress        = 1 << 5
	clientSSL             = 1 << 11
	clientZstd            = 1 << 26
	clientQueryAttributes = 1 << 27
)

// wire is the connection beneath the driver. The driver opens it, prepares statements and does
// nearly everything else. Between two calls of the driver a statement of many rows may be
// executed directly: the driver would need a value of type any for each parameter, and copies
// each several times.
//
// That is possible only where the driver's packets are on the connection as they are. With TLS
// or compression they are not, and the driver does all.
type wire struct {
	net.Conn
	greeted   bool
	plain     bool              // neither TLS nor compression
	preparing []byte            // the beginning of the answer to what the driver prepares; nil: none is awaited
	prepared  uint32            // the statement that the driver prepared last
	known     map[string]uint32 // statements by their text
	limit     int               // of a packet
	packet    []byte            // reused for every statement
	reply     []byte
}

// Write passes on what the driver sends. A packet of the driver is one Write.
func (w *wire) Write(p []byte) (int, error) {
	switch {
	case !w.greeted && len(p) >= 8: // the answer to the server's greeting begins with what the connection is to be
		w.greeted = true
		w.plain = binary.LittleEndian.Uint32(p[4:])&(clientSSL|clientCompress|clientZstd|clientQueryAttributes) == 0
	case !w.plain || len(p) < 9 || p[3] != 0: // only the first packet of a command has number 0
	case p[4] == comStmtPrepare:
		w.preparing = make([]byte, 0, preparedLength)
	case p[4] == comStmtClose:
		w.forget(binary.LittleEndian.Uint32(p[5:]))
	}
	return w.Conn.Write(p)
}

// preparedLength is how much of the answer tells of a statement that was prepared: the packet's
// head, a 0, and the statement's number.
const preparedLength = headLength + 1 + 4

// Read passes on what the driver receives.
func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.preparing == nil {
		return n, err
	}
	w.preparing = append(w.preparing, p[:min(n, preparedLength-len(w.preparing))]...)
	if len(w.preparing) == preparedLength {
		if w.preparing[headLength] == answerOK {
			w.prepared = binary.LittleEndian.Uint32(w.preparing[headLength+1:])
		}
		w.preparing = nil
	}
	return n, err
}

// SyscallConn lets the driver look whether the server has closed the connection.
func (w *wire) SyscallConn() (syscall.RawConn, error) {
	conn, ok := w.Conn.(syscall.Conn)
	if !ok {
		return nil, errors.ErrUnsupported
	}
	return conn.SyscallConn()
}

// know makes sure that a statement can be executed directly, if the connection allows it. prepare
// has the driver prepare it.
func (w *wire) know(text string, prepare func() error) (bool, error) {
	if _, ok := w.known[text]; ok || !w.plain {
		return ok, nil
	}
	w.prepared = 0
	if err := prepare(); err != nil {
		return false, err
	}
	if w.prepared != 0 {
		w.known[text] = w.prepared
	}
	return w.prepared != 0, nil
}

func (w *wire) forget(statement uint32) {
	for text, id := range w.known {
		if id == statement {
			delete(w.known, text)
		}
	}
}

// execute runs a statement that is known.
func (w *wire) execute(ctx context.Context, text string, p *row.Plan, rows []row.Row, columns []int) (err error) {
	if w.packet, err = appendExecute(w.packet[:0], w.known[text], p, rows, columns, w.limit); err != nil {
		return err
	}
	return w.exchange(ctx)
}

// exchange sends the packet and reads the server's answer to it. After any error but the
// server's own the connection is closed: nobody knows what is still on it.
func (w *wire) exchange(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() { _ = w.SetDeadline(time.Unix(1, 0)) }) // ends what waits
	err := w.trip()
	if !stop() {
		err = ctx.Err() // the deadline is set, or will be
	} else if err == nil {
		return nil
	}
	if _, answered := errors.AsType[*mysql.MySQLError](err); !answered {
		_ = w.Close() // the first error counts
	}
	return err
}

func (w *wire) trip() error {
	n := len(w.packet) - headLength
	w.packet[0], w.packet[1], w.packet[2], w.packet[3] = byte(n), byte(n>>8), byte(n>>16), 0
	if err := w.SetDeadline(time.Time{}); err != nil { // the driver sets one for each packet, if any
		return broken(err)
	}
	if _, err := w.Conn.Write(w.packet); err != nil {
		return broken(err)
	}
	var head [headLength]byte
	if _, err := io.ReadFull(w.Conn, head[:]); err != nil {
		return broken(err)
	}
	n = int(head[0]) | int(head[1])<<8 | int(head[2])<<16
	if head[3] != 1 || n == 0 || n > 1<<16 {
		return mysql.ErrPktSync
	}
	w.reply = append(w.reply[:0], make([]byte, n)...)
	if _, err := io.ReadFull(w.Conn, w.reply); err != nil {
		return broken(err)
	}
	return answer(w.reply)
}

// headLength is that of a packet: three bytes of length and the packet's number.
const headLength = 4

func broken(err error) error { return fmt.Errorf("%w: %w", mysql.ErrInvalidConn, err) }

// answer is what the server says of a statement that returns no rows.
func answer(reply []byte) error {
	switch {
	case reply[0] == answerOK:
		return nil
	case reply[0] != answerError || len(reply) < 3:
		return mysql.ErrMalformPkt
	}
	err := &mysql.MySQLError{Number: binary.LittleEndian.Uint16(reply[1:])}
	text := reply[3:]
	if len(text) > len(err.SQLState) && text[0] == '#' {
		text = text[1+copy(err.SQLState[:], text[1:]):]
	}
	err.Message = string(text)
	return err
}

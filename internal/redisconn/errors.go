package redisconn

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"syscall"

	"github.com/gomodule/redigo/redis"

	"baton/internal/text"
)

// remedies maps the code of an error reply to a text that says what an operator can do. An error message contains this text,
// followed by Redis' own text.
var remedies = map[string]string{
	"WRONGTYPE": "a key of the election has the wrong type: is it used by another program? Choose another " +
		"election.lock_key, or delete the key if it is not needed. A hash may be a lock in Redisson's format: if other programs use it, " +
		"set election.lock_format to the same format",
	"NOAUTH":      "redis requires a password: set redis.password_file",
	"WRONGPASS":   "redis refuses the user or password: check redis.username and redis.password_file",
	"NOPERM":      "the redis user lacks a permission: grant it by ACL SETUSER",
	"READONLY":    "this redis is a replica: is the configured address the master's? If it has just failed over, wait",
	"LOADING":     "redis is loading its data: wait",
	"MASTERDOWN":  "this redis is a replica that has lost its master: wait for the failover",
	"CLUSTERDOWN": "the redis cluster does not serve this slot: wait for the failover",
	"MOVED": "another node of the redis cluster serves this slot: wait if the slot is being moved; if redis is configured by url, name " +
		"the nodes under cluster instead",
	"ASK":        "the redis cluster is moving this slot to another node: wait",
	"TRYAGAIN":   "the redis cluster is moving the keys of this slot to another node: wait until all keys are there",
	"DENIED":     "redis runs in protected mode: set a password for it, or bind it to an explicit address",
	"NOREPLICAS": "redis refuses writes because it has too few replicas (min-replicas-to-write)",
	"MISCONF":    "redis refuses writes because it cannot save to disk: is the disk full?",
	"OOM":        "redis refuses writes because its memory is full (maxmemory)",
	"BUSY":       "redis is busy with another client's script",
	"ERR":        "redis refuses the command",
}

// ErrRefused means that Redis has refused a command and has not executed it.
var ErrRefused = errors.New("not done")

// Explain adds a remedy to an error of Redis. An error reply means that the command was not executed, so the result matches ErrRefused.
// After any other error the outcome is unknown.
func Explain(err error) error {
	var reply redis.Error
	var network *net.OpError
	switch {
	case err == nil, errors.Is(err, ErrRefused): // explained before
		return err
	case errors.As(err, &reply):
		if remedy, ok := remedies[Code(reply)]; ok {
			return fmt.Errorf("%s (%w: %w)", remedy, ErrRefused, err)
		}
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case strings.Contains(err.Error(), "redigo: "):
		// The client library has no sentinel for a reply that it cannot parse.
		return fmt.Errorf("the server's answer is not Redis' protocol: is the configured address right? (%w)", err)
	case errors.As(err, new(unreached)), errors.As(err, new(unanswered)): // explained before
		return err
	case errors.As(err, &network) && network.Op == "dial":
		return unreached{fmt.Errorf("%w: is redis running there, and is the configured address right?", err)}
	case errors.As(err, &network), hungUp(err), errors.Is(err, context.DeadlineExceeded):
		return unanswered{err}
	}
	return err
}

// unreached marks an explained error that means that no connection to a server could be made.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// unanswered marks an explained error that means that a command got no answer.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// These are the codes that [Unavailable] returns for a server that does not reply.
const (
	UnavailableUnreached = "unreached" // no connection could be made
	UnavailableSilent    = "silent"    // a connection was made
)

// unavailable lists the codes of error replies by which a server refuses nearly every command of every client.
var unavailable = []string{"NOAUTH", "WRONGPASS", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "DENIED", "NOREPLICAS", "MISCONF",
	"OOM", "BUSY"}

// Unavailable returns a code for the reason why the server serves no client at all. It returns "" if err concerns only one command, or
// no server.
func Unavailable(err error) string {
	var reply redis.Error
	switch {
	case err == nil, errors.Is(err, context.Canceled):
	case errors.As(err, &reply):
		if code := Code(reply); slices.Contains(unavailable, code) {
			return code
		}
	case errors.As(err, new(unreached)):
		return UnavailableUnreached
	case errors.As(err, new(unanswered)):
		return UnavailableSilent
	}
	return ""
}

// explainDial is [Explain] for an error that occurred while connecting.
func explainDial(err error, p serverAddress, encrypted bool) error {
	var handshake *handshakeError
	var alert *net.OpError
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	var reply redis.Error
	errors.As(err, &handshake) // handshake stays nil if err is another error
	switch {
	case text.NoAltName(err) != "":
		return fmt.Errorf("%s (%w)", text.NoAltName(err), err)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate is for another host: set redis.tls.server_name (%w)", err)
	case errors.As(err, &certificate):
		return fmt.Errorf("the certificate cannot be trusted: has redis.tls.ca_file the certificate of the authority that "+
			"signed it? (%w)", err)
	case errors.As(err, &record):
		return fmt.Errorf("the port does not speak TLS: use redis:// instead of rediss:// and remove redis.tls, or use the server's "+
			"tls-port (%w)", err)
	case errors.As(err, &alert) && alert.Op == "remote error", encrypted && handshake == nil && hungUp(err):
		// The library calls this an alert. The server may also have closed the connection before we read the alert.
		return fmt.Errorf("the server refuses the TLS connection: does it require a client certificate (redis.tls.cert_file and "+
			"key_file), signed by an authority that the server trusts? (%w)", err)
	case handshake != nil && (hungUp(err) || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("the server did not finish the TLS handshake: does that port speak TLS? (%w)", err)
	case errors.As(err, &reply) && p.sentinel && strings.HasSuffix(remedies[Code(reply)], "redis.password_file"):
		return fmt.Errorf("the sentinel refuses the user or password: check redis.sentinel.username and password_file (%w: %w)",
			ErrRefused, err)
	case hungUp(err) && !encrypted:
		return fmt.Errorf("the server closed the connection before it answered: does that port require TLS (rediss:// or redis.tls)? "+
			"(%w)", err)
	}
	return Explain(err)
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

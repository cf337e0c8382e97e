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

// remedies are what an operator can do about an error reply, by its code. Redis' own text
// follows.
var remedies = map[string]string{
	"WRONGTYPE": "a key of the election has the wrong type: is it used by another program? Choose another " +
		"election.lock_key, or delete the key if it is not needed. A hash may be a lock in the format of Redisson: if others hold it, " +
		"set election.lock_format to theirs",
	"NOAUTH":      "redis requires a password: set redis.password_file",
	"WRONGPASS":   "redis refuses the user or password: check redis.username and redis.password_file",
	"NOPERM":      "the redis user lacks a permission: grant it by ACL SETUSER",
	"READONLY":    "this redis is a replica: is the configured address the master's? If it has just failed over, wait",
	"LOADING":     "redis is loading its data: wait",
	"MASTERDOWN":  "this redis is a replica that has lost its master: wait for the failover",
	"CLUSTERDOWN": "the redis cluster does not serve this slot: wait for the failover",
	"MOVED": "another node of the redis cluster serves this slot: wait if it is being moved; if it is configured by url, name the nodes " +
		"under cluster instead",
	"ASK":        "the redis cluster is moving this slot to another node: wait",
	"TRYAGAIN":   "the redis cluster is moving the keys of this slot to another node: wait until all are there",
	"DENIED":     "redis runs in protected mode: give it a password, or bind it to an address of its own",
	"NOREPLICAS": "redis refuses writes for want of replicas (min-replicas-to-write)",
	"MISCONF":    "redis refuses writes because it cannot save to disk: is the disk full?",
	"OOM":        "redis refuses writes because its memory is full (maxmemory)",
	"BUSY":       "redis is busy with another client's script",
	"ERR":        "redis refuses the command",
}

// ErrRefused means that no command was done.
var ErrRefused = errors.New("not done")

// Explain adds the remedy to an error of Redis. After an error reply the command was not done:
// such an error matches ErrRefused. After any other error the outcome is unknown.
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

// unreached is an explained error of a server that no connection could be made to.
type unreached struct{ error }

func (u unreached) Unwrap() error { return u.error }

// unanswered is an explained error of a command that got no answer.
type unanswered struct{ error }

func (u unanswered) Unwrap() error { return u.error }

// The answers of [Unavailable] for a server that does not reply.
const (
	UnavailableUnreached = "unreached" // no connection could be made
	UnavailableSilent    = "silent"    // a connection was made
)

// unavailable are the codes of replies that refuse nearly every command of every client.
var unavailable = []string{"NOAUTH", "WRONGPASS", "READONLY", "LOADING", "MASTERDOWN", "CLUSTERDOWN", "DENIED", "NOREPLICAS", "MISCONF",
	"OOM", "BUSY"}

// Unavailable is the code of the reason why the server behind an error serves no client; "" if the error concerns one command or no
// server.
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

// explainDial is [Explain] for errors of connecting.
func explainDial(err error, p place, encrypted bool) error {
	var handshake *handshakeError
	var alert *net.OpError
	var certificate *tls.CertificateVerificationError
	var name x509.HostnameError
	var record tls.RecordHeaderError
	var reply redis.Error
	errors.As(err, &handshake) // nil if it is another error
	switch {
	case text.NoAltName(err) != "":
		return fmt.Errorf("%s (%w)", text.NoAltName(err), err)
	case errors.As(err, &name):
		return fmt.Errorf("the certificate is for another host: set redis.tls.server_name (%w)", err)
	case errors.As(err, &certificate):
		return fmt.Errorf("the certificate cannot be trusted: is redis.tls.ca_file that of the authority that signed it? (%w)", err)
	case errors.As(err, &record):
		return fmt.Errorf("that port does not speak TLS: use redis:// instead of rediss://, and no redis.tls, or the server's "+
			"tls-port (%w)", err)
	case errors.As(err, &alert) && alert.Op == "remote error", encrypted && handshake == nil && hungUp(err):
		// The library calls it an alert; or the server hung up before the alert was read.
		return fmt.Errorf("the server refuses the TLS connection: does it require a client certificate (redis.tls.cert_file and "+
			"key_file) by an authority that it trusts? (%w)", err)
	case handshake != nil && (hungUp(err) || errors.Is(err, context.DeadlineExceeded)):
		return fmt.Errorf("no TLS handshake: does that port speak TLS? (%w)", err)
	case errors.As(err, &reply) && p.sentinel && strings.HasSuffix(remedies[Code(reply)], "redis.password_file"):
		return fmt.Errorf("the sentinel refuses the user or password: check redis.sentinel.username and password_file (%w: %w)",
			ErrRefused, err)
	case hungUp(err) && !encrypted:
		return fmt.Errorf("the server closed the connection before it answered: does that port require TLS, rediss:// or redis.tls? "+
			"(%w)", err)
	}
	return Explain(err)
}

func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

package testsupport

import (
	"fmt"
	"path/filepath"
	"strconv"
)

// RedisOption changes how a Redis is started.
type RedisOption func(*redisOptions)

type redisOptions struct {
	password         string
	sentinelPassword string
	args             []string
	unix             bool
	clock            bool
	cluster          bool
	tls              *tlsOption
	master           *RedisDaemon
}

func redisOptionsOf(opts []RedisOption) *redisOptions {
	var o redisOptions
	for _, opt := range opts {
		opt(&o)
	}
	return &o
}

// RedisPassword makes the server require a password.
func RedisPassword(pw string) RedisOption { return func(o *redisOptions) { o.password = pw } }

// RedisAOF makes every acknowledged write survive Kill and Restart. Without this option a restarted server is empty, or has the data of the
// test's last SAVE.
func RedisAOF() RedisOption {
	return RedisArgs("--appendonly", "yes", "--appendfsync", "always")
}

// RedisArgs appends args to the server's command line.
func RedisArgs(args ...string) RedisOption {
	return func(o *redisOptions) { o.args = append(o.args, args...) }
}

// RedisUnix makes the server listen also on a Unix socket.
func RedisUnix() RedisOption { return func(o *redisOptions) { o.unix = true } }

// redisServer is a *Redis or a *RedisDaemon.
type redisServer interface{ redisDaemon() *RedisDaemon }

// RedisReplicaOf makes the server a replica of master, with master's password and certificates. The replica is ready when it has copied
// master's data. It answers writes with READONLY.
func RedisReplicaOf(master redisServer) RedisOption {
	return func(o *redisOptions) {
		o.master = master.redisDaemon()
		o.password = o.master.password
		if o.master.tls != nil {
			o.tls = &tlsOption{clientCert: o.master.tls.clientCert, files: o.master.tls}
		}
	}
}

// RedisHidesStaleData makes a replica answer MASTERDOWN while it has no link to its
// master.
func RedisHidesStaleData() RedisOption { return RedisArgs("--replica-serve-stale-data", "no") }

// RedisNeedsReplicas makes a master answer writes with NOREPLICAS while fewer than n
// replicas are linked to it.
func RedisNeedsReplicas(n int) RedisOption {
	return RedisArgs("--min-replicas-to-write", strconv.Itoa(n))
}

// RedisClusterNode puts the server into Cluster mode. Alone, the server serves no slot, and answers CLUSTERDOWN to every command that names
// a key. StartCluster starts a whole Cluster.
func RedisClusterNode() RedisOption { return func(o *redisOptions) { o.cluster = true } }

// argv returns the command line of a Redis that keeps its files in dir.
func (o *redisOptions) argv(program, dir string, port, bus int, tls *tlsFiles) []string {
	return append(o.serverArgs(program, dir, port, tls), o.dataArgs(dir, bus)...)
}

// serverArgs returns the arguments that data servers and Sentinels have in common.
func (o *redisOptions) serverArgs(program, dir string, port int, tls *tlsFiles) []string {
	argv := []string{program, filepath.Join(dir, redisConf), "--bind", "127.0.0.1", "--dir", dir, "--daemonize", "no"}
	if tls != nil {
		return append(argv, tls.args(port)...)
	}
	return append(argv, "--port", fmt.Sprint(port))
}

// dataArgs returns the further arguments of a server that holds data.
func (o *redisOptions) dataArgs(dir string, bus int) []string {
	// The master sends its data to a replica at once. By default it waits 5 s for further replicas.
	argv := []string{"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0"}
	if o.password != "" {
		argv = append(argv, "--requirepass", o.password, "--masterauth", o.password)
	}
	if o.unix {
		argv = append(argv, "--unixsocket", filepath.Join(dir, redisSocket))
	}
	if o.cluster {
		argv = append(argv, "--cluster-enabled", "yes", "--cluster-port", fmt.Sprint(bus))
		if o.tls != nil {
			argv = append(argv, "--tls-cluster", "yes")
		}
	}
	return append(argv, o.args...)
}

// conf returns the content of the configuration file at the first start. The server may rewrite the file, because a Sentinel makes a
// replica record its master there.
func (o *redisOptions) conf() string {
	if o.master == nil {
		return ""
	}
	return fmt.Sprintf("replicaof 127.0.0.1 %d\n", o.master.port)
}

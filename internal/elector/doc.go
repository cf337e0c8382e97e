// Package elector elects one leader among the nodes that contend for a lock, runs
// the leader's work while it may be trusted, and hands over.
//
// # Model
//
// A [Lock] grants a lease to one owner at a time and lets it expire by the
// store's clock. Every term has an owner of its own, a fresh UUID, and an epoch
// that is higher than that of every earlier term. Nodes share nothing but the
// store. Processes may stop at any point and go on later, or never; requests and
// replies may be lost, late, or both, and requests overtake each other; clocks may
// run a little differently and their wall time is not used at all.
//
// # Responsibilities
//
//	elector     when to ask, lead, stop, release and stand aside; that the work has
//	            returned before the lock is released
//	heartbeat   the trust window: when to renew, when to stop, when to die
//	a Lock      which node may win, under which epoch: reservation, pause, priority,
//	            quarantine (redislock: in scripts, and the same without)
//	quorum      one Lock made of N stores
//	AnyOf       one Lock made of N slots
//	LeadFunc    that nothing of the work goes on after it has returned
//	databases   that a deposed leader's transaction does not commit (the fence)
//
// # States
//
//	           ctx ends (give back a lock that may be ours)
//	     ┌──────────────────────────────────────────────► end
//	     │
//	┌────┴────┐  held, wait, refused,  ┌─────────┐
//	│ standby │ ◄───── unknown ─────── │ attempt │ ──┐ won too late: give it back,
//	│         │ ── wait over, hint ──► │         │ ◄─┘ ask as another owner
//	└─────────┘                        └────┬────┘
//	  ▲     ▲                               │ won, and trusted still
//	  │     │ time over, or another         ▼
//	  │     │ node has led             ┌─────────┐
//	  │ ┌───┴───┐                      │ leading │ ◄─┐ renewed
//	  │ │cooling│                      └──┬───┬──┘ ──┘
//	  │ └───────┘                         │   │ ordered to step down, shutting down,
//	  │     ▲               work returned │   │ soft stop passed, lease lost
//	  │     │ stepped down,  unasked      │   ▼
//	  │     │ abdicated                   │ ┌─────────┐
//	┌─┴─────┴─┐                           │ │stopping │ ◄─┐ renewed: the lease is kept
//	│conclude │ ◄─────────────────────────┘ └─┬──┬────┘ ──┘ until the work has returned
//	│ release │ ◄─────────────────────────────┘  │ hard stop passed
//	└────┬────┘       work has returned          ▼
//	     └─► end, if ctx has ended              Die
//
// campaign is the left and the attempt, runTerm is the rest: attend waits for the work, keep renews beside it, and the window's Guard
// watches both.
//
// # The answers to an attempt
//
//   - Won: lead, unless the answer came too late to start any work.
//   - Held: wait for the rest of the lease and 5 ms, for the poll interval, or for
//     a hint: the lock was released, or hints cease or are back. Where hints are being
//     listened for ([Config]'s Hinted) polls only find out that one was lost: three
//     intervals, at most 8 s. Other programs give no hints: their locks are polled as if
//     there were none. A foreign holder has no name and no epoch.
//   - Wait: no client holds the lock, and we may not have it. [EventWaiting] says why:
//     reserved for the named successor (at most [ReserveFor]), left to a live node of a
//     higher priority (half a second: it may be dead), paused (until resumed; only the
//     poll or a hint ends it), in quarantine (see below), we are an observer, or
//     deferring (see there).
//   - Refused ([ErrRefused]): not applied. Unknown (any other error): it may have been,
//     or will be. Both: pause, 100 ms to 5 s and less than a lease, and ask again as the
//     same owner, for ever.
//   - [ErrSpent]: the lock has taken back its grant, and the release is still under
//     way. It would take a later grant away, too: ask again as another owner. The
//     first one's lease, if there is any, runs out.
//
// # What fails, and what then
//
// While asking:
//
//   - The reply to an acquire is lost: the same owner asks again and is answered that
//     it has won, under the same epoch. If we stop instead, the lock is given back.
//   - The reply to an acquire is late: trust counts from the sending; if too
//     little is left to start anything, the lock is given back.
//   - An acquire arrives after all of that, even after its own give-back: the lock is
//     held by no term, until that one lease has ended.
//   - The store is away: attempts go on. Trouble is reported once, once more if it turns
//     into one of another kind that lasts, and once when it is over.
//   - A hint is lost, doubled or false: the poll is the truth. A lost one costs a
//     poll, never more than the rest of the lease; a named successor that missed
//     its hint comes too late, and the lock may be free for a while. Forged
//     ones cause an attempt every 20 ms, a renewal every 50 ms, and nothing else.
//
// While leading:
//
//   - A renewal is unanswered: the window does not move; ask again at once. When
//     the soft stop passes, the work is cancelled; renewals go on, so that a
//     drain does not outlive its lease if the store comes back.
//   - A renewal is answered "not yours" ([ErrLost]): the work is cancelled now.
//     The lock is not released: it is another node's.
//   - The hard stop passes and the work has neither returned nor settled: the process
//     dies. A database rolls back the half-done work, or the epoch fences it off.
//     Settled work only records its end; no process dies for that.
//   - The process was stopped (SIGSTOP, suspend) beyond its hard stop: the first
//     thing that runs on waking is the guard, not the store's answer. The window is
//     closed, the work gets a quarter of a second to return, then Die. A paused VM
//     is the same if its boot clock goes on or is set on waking; if not, nothing
//     here can notice, and only the epoch in the databases protects the data.
//   - The lease has expired: it is never renewed again, even if the store would.
//     The owner is deleted if it is still there, and the next term has a new one.
//   - The observer hangs (its log is not read any more): the work is cancelled
//     first, and Die does not wait for it. If reporting the win took the window, no work
//     begins.
//   - The work panics: the process ends; a LeadFunc recovers the panics that it can.
//
// While ending:
//
//   - The release fails at once (a cut connection): it is tried once more. If it is
//     not answered, the lease runs out, and the end is reported as not Released.
//   - The release is answered late: its owner is never used again.
//   - The lease is lost or expires during a drain: the term ends as that.
//   - The process crashes: the lease runs out, unless a process that has seen it die
//     deletes its owner (`baton release --crashed`, by the lease file).
//
// When the store has forgotten (a restart, a failover, FLUSHALL, an eviction):
//
//   - A leader that it does not know may trust its lease still. So no new leader wins for
//     one lease: quarantine. It ends early if the leader renews: inside its window it
//     puts its lock back, unless another node has won since. A renewal from before the
//     accident puts nothing back.
//   - What shows it: another incarnation of the store than that which wrote the term; a
//     lock that is gone before a lease that a standby has seen can have ended; a
//     candidate that knows of an epoch ([Candidate]'s Floor) in a store that knows of none.
//   - To a candidate that knows of none either the lock is new: it wins at once.
//     A running node remembers the epochs that it has seen; a daemon also asks its state directory,
//     else its databases, when it starts; `baton lock` has nothing to ask.
//   - The accident does not show: data was replaced beneath a store that goes on under
//     the same name (made a replica of one that lagged and a master again, without a request
//     in between). Then only the epoch in the databases protects the data.
//   - The store is an old master without replicas that still acknowledges:
//     wait_replicas or a quorum helps, otherwise only the epoch in the databases.
//
// # Handing over
//
// An order ([Order]: step down, perhaps in favour of a node; a pause is one, too) comes with the answer to a renewal; a hint only makes
// that renewal come at once. The work ends, the lock is released and perhaps reserved, and this node stands aside: it goes on asking, as
// an observer. After a step-down that lasts until another node has led, which a higher epoch shows, or for a poll interval and a bit: a
// node alone then leads again; where the first answer already shows that, the next one follows at once. After an [Abdication] it lasts
// for the cool-down, even if others have led meanwhile, or until the node that abdicated ends it. Work that returns unasked is a
// step-down, unless the election ends with it ([ErrDone]); a shutdown, a loss and an expiry put no node aside. A leader that gets two
// orders steps down once.
//
// # The delay before a free lock
//
// A node that leads more than its share of several locks leaves a free one to others for a moment ([Config]'s AcquireDelay, at most half a
// second), so that work spreads without a coordinator. It asks as a deferring candidate: a named successor wins nevertheless, the others
// get the answer that the lock is free. The time counts from that answer; when it is over and the lock is still free, we ask for it. A
// lock that is held, paused, in quarantine or reserved for another is not free: the delay begins after that, and a held lock is polled as
// usual. Renewals know of none.
//
//   - The others are dead, or do not want it: the lock stays free for that time, once.
//   - The others are as deferring: the one with the least wins, or wins by chance.
//   - A hint comes meanwhile: we ask again, and the time goes on. It ends early where
//     AcquireDelay says less than before, as after the death of others.
//   - The store is away meanwhile: the time goes on, too.
//   - We die meanwhile: we held nothing.
//   - AcquireDelay answers by an old state: work is spread worse, and nothing else. It
//     decides when we ask, never which node may win.
//
// # Epochs
//
// The lock assigns them: above its stored epoch and above the candidate's Floor, and from its clock in milliseconds where it may have
// forgotten some. The Floor is the highest epoch that this process has seen, that of every Held and Wait (but by a quorum's Wait, see
// there), and before that what [Config] brings. Where a database knows a higher one than the term's, [Term.Raise] lifts the term's above
// it, or finds that the lock is lost.
//
// # Others of its kind
//
//   - An observer (candidate: false) asks to learn the leader. It never wins,
//     even if there is no other node.
//   - Several electors in one process share a [heartbeat.Beat] and a connection: their
//     renewals go at the same moments, in one round trip. An error of the connection
//     costs each of them one attempt. For one key a process makes one lock.
//   - A semaphore is [AnyOf] its slots, each an election of its own. A slot whose answer
//     is missing is asked again before any other, so an owner never has two, except for an
//     acquire that is later than all of that. A slot's epoch says nothing of the other
//     slots'. One elector leads one term of it: the next would bring the first slot's
//     epoch to the second.
//   - A quorum is a Lock as any other, but asked at once by all it is divided:
//     [Config]'s HintSpread keeps those apart who got the same hint. It may win under
//     another owner than the candidate's: [Answer]'s Owner.
//
// # What does not depend on this package
//
// That an epoch is never given twice, and that a deposed leader's transaction
// does not commit: those are the lock's and the databases' promises. Here it is
// only made unlikely that they are needed.
package elector

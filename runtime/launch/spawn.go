package launch

import (
	"runtime"
	"sync"
	"syscall"
)

// spawnThread is the one thread that creates children. It lives as long as the
// process, so that Pdeathsig means our death and not that of some thread.
var spawnThread = sync.OnceValue(func() chan<- func() {
	calls := make(chan func())
	go spawnLoop(calls)
	return calls
})

func spawnLoop(calls <-chan func()) {
	runtime.LockOSThread()
	for call := range calls {
		call()
	}
}

// children are the processes that Start made and that are not reaped yet; Sweep
// tells them from adopted ones.
var children = struct {
	sync.Mutex
	pids map[int]bool
}{pids: map[int]bool{}}

// spawn forks and executes on the spawn thread.
func spawn(path string, args []string, attr *syscall.ProcAttr) (pid int, err error) {
	done := make(chan struct{})
	spawnThread() <- func() {
		defer close(done)
		// Held over the fork, so that no sweep sees a child that is not listed.
		children.Lock()
		defer children.Unlock()
		pid, _, err = syscall.StartProcess(path, args, attr)
		if err == nil {
			children.pids[pid] = true
		}
	}
	<-done
	return pid, err
}

func forgetChild(pid int) {
	children.Lock()
	defer children.Unlock()
	delete(children.pids, pid)
}

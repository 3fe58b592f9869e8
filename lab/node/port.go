package node

import (
	"errors"
	"net"
	"sync"
)

// ports hands out free loopback ports, each to one container at a time. Another program of the machine can still take one between take and the
// container's own listen; then the container fails and is restarted with another.
type ports struct {
	mu    sync.Mutex
	taken map[int]bool
}

func (s *ports) take() (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range 100 {
		l, err := net.Listen("tcp", loopback+":0")
		if err != nil {
			return 0, err
		}
		port := l.Addr().(*net.TCPAddr).Port
		l.Close()
		if s.taken[port] {
			continue
		}
		if s.taken == nil {
			s.taken = map[int]bool{}
		}
		s.taken[port] = true
		return port, nil
	}
	return 0, errors.New("no free port")
}

func (s *ports) release(port int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.taken, port)
}

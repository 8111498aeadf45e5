package spmd

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// wires carries rings over TCP: for each remote peer and lane, one goroutine
// moves the bytes of the out ring to the connection and one those of the
// connection to the in ring. The layers above see rings only.
type wires struct {
	mesh    *mesh
	all     []*wire
	readers sync.WaitGroup
	writers sync.WaitGroup
}

type wire struct {
	mesh         *mesh
	peer, lane   int
	conn         net.Conn
	link         *link
	given, taken *bell // of the writer and the reader
	closing      atomic.Bool
	unsent       atomic.Pointer[error] // why the writer gave up
}

// lingerLimit bounds how long Close waits for a peer that does not read.
const lingerLimit = 2 * time.Second

// A host that vanishes without a word is noticed within idle + count*interval.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5}

func (ws *wires) add(a arrival) {
	w := &wire{mesh: ws.mesh, peer: a.peer, lane: a.lane, conn: a.conn, given: newBell(), taken: newBell()}
	w.link = &link{
		peer: a.peer, in: newRing(ringCapacity[a.lane]), out: newRing(ringCapacity[a.lane]),
		given: w.given, taken: w.taken,
	}
	if tcp, ok := a.conn.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(keepAlive)
	}
	ws.mesh.lanes[a.lane].links[a.peer] = w.link
	ws.all = append(ws.all, w)
}

// start runs the goroutines, once all links are there.
func (ws *wires) start() {
	for _, w := range ws.all {
		ws.writers.Go(w.write)
		ws.readers.Go(w.read)
	}
}

// close lets the writers say goodbye, then ends the readers. The mesh's state
// has been announced before.
func (ws *wires) close() {
	for _, w := range ws.all {
		_ = w.conn.SetWriteDeadline(time.Now().Add(lingerLimit))
	}
	ws.writers.Wait()
	for _, w := range ws.all {
		w.closing.Store(true)
		_ = w.conn.Close()
		w.taken.ring()
	}
	ws.readers.Wait()
}

// frame precedes every run of bytes on a connection.
type frame struct {
	kind     uint8
	lane     uint8
	length   uint32 // of what follows; whole cache lines in a data frame
	sequence uint64 // from 1
}

const (
	frameSize = 16
	maxFrame  = 64 << 10

	frameData   uint8 = 1
	frameLeft   uint8 = 2 // the peer leaves in good order
	frameBroken uint8 = 3 // it gave up: the culprit in 4 bytes, then why
)

func (f frame) put(b []byte) {
	b[0], b[1], b[2], b[3] = f.kind, f.lane, 0, 0
	binary.LittleEndian.PutUint32(b[4:], f.length)
	binary.LittleEndian.PutUint64(b[8:], f.sequence)
}

func parseFrame(b [frameSize]byte, lane int, sequence uint64) (frame, error) {
	f := frame{kind: b[0], lane: b[1], length: binary.LittleEndian.Uint32(b[4:]), sequence: binary.LittleEndian.Uint64(b[8:])}
	switch {
	case b[2] != 0 || b[3] != 0 || f.kind < frameData || f.kind > frameBroken:
		return f, errors.New("it sent an unknown frame")
	case int(f.lane) != lane || f.sequence != sequence:
		return f, fmt.Errorf("it sent frame %d of lane %d instead of frame %d of lane %d", f.sequence, f.lane, sequence, lane)
	case f.kind == frameData && (f.length == 0 || f.length > maxFrame || f.length%line != 0):
		return f, fmt.Errorf("it sent a data frame of %d bytes", f.length)
	case f.kind == frameLeft && f.length != 0, f.kind == frameBroken && (f.length < 4 || f.length > maxFrame):
		return f, fmt.Errorf("it sent a farewell of %d bytes", f.length)
	}
	return f, nil
}

// wireSpin is how often a writer looks for bytes before it sleeps.
const wireSpin = 16

// write sends what appears in the out ring until this rank leaves the World.
func (w *wire) write() {
	out := w.link.out
	var sequence uint64
	for idle := 0; ; {
		state := w.mesh.mine.state.Load()
		b := out.ready(maxFrame)
		switch {
		case state == stateBroken, state == stateLeft && len(b) == 0:
			w.farewell(state, sequence+1)
			return
		case len(b) > 0:
			idle = 0
			sequence++
			if err := w.send(frame{kind: frameData, lane: uint8(w.lane), length: uint32(len(b)), sequence: sequence}, b); err != nil {
				// The peer's last words may still be on their way to the reader.
				w.unsent.Store(&err)
				w.taken.ring()
				return
			}
			out.release(len(b))
			w.mesh.lanes[w.lane].bell.ring()
		case idle < wireSpin:
			idle++
			runtime.Gosched()
		default:
			strikes := w.given.arm()
			if w.mesh.mine.state.Load() != state || len(out.ready(1)) > 0 {
				w.given.disarm()
				continue
			}
			w.given.park(strikes, time.Hour)
		}
	}
}

func (w *wire) send(f frame, body []byte) error {
	var head [frameSize]byte
	f.put(head[:])
	_, err := (&net.Buffers{head[:], body}).WriteTo(w.conn)
	return err
}

// farewell says how this rank leaves. Nobody can be told of its failure.
func (w *wire) farewell(state uint32, sequence uint64) {
	f := frame{kind: frameLeft, lane: uint8(w.lane), sequence: sequence}
	var body []byte
	if state == stateBroken {
		culprit, text := w.mesh.mine.reason(len(w.mesh.peers))
		body = append(binary.LittleEndian.AppendUint32(nil, uint32(int32(culprit))), text...)
		f.kind, f.length = frameBroken, uint32(len(body))
		_ = w.conn.SetWriteDeadline(time.Now().Add(lingerLimit))
	}
	_ = w.send(f, body)
}

// lost reports that the peer is gone.
func (w *wire) lost(err error) {
	if w.closing.Load() {
		return
	}
	why := "its connection broke: " + err.Error()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		why = "its connection closed"
	}
	w.mesh.peers[w.peer].died(why)
	w.mesh.wake()
}

// read fills the in ring until the peer leaves, fails or this rank closes.
func (w *wire) read() {
	from := bufio.NewReaderSize(w.conn, maxFrame+frameSize)
	for sequence := uint64(1); ; sequence++ {
		var head [frameSize]byte
		_, err := io.ReadFull(from, head[:])
		var f frame
		if err == nil {
			f, err = parseFrame(head, w.lane, sequence)
		}
		if err == nil && f.kind != frameData {
			err = w.readFarewell(from, f)
			if err == nil {
				return
			}
		}
		if err == nil {
			err = w.readData(from, int(f.length))
		}
		if err != nil {
			w.lost(err)
			return
		}
	}
}

func (w *wire) readData(from io.Reader, n int) error {
	in := w.link.in
	for n > 0 {
		room := in.space(n)
		if len(room) == 0 {
			strikes := w.taken.arm()
			switch {
			case w.closing.Load():
				w.taken.disarm()
				return net.ErrClosed
			case len(in.space(n)) > 0:
				w.taken.disarm()
			case w.unsent.Load() != nil:
				w.taken.disarm()
				return *w.unsent.Load()
			default:
				w.taken.park(strikes, time.Hour)
			}
			continue
		}
		if _, err := io.ReadFull(from, room); err != nil {
			return err
		}
		in.publish(len(room))
		w.mesh.lanes[w.lane].bell.ring()
		n -= len(room)
	}
	return nil
}

func (w *wire) readFarewell(from io.Reader, f frame) error {
	body := make([]byte, f.length)
	if _, err := io.ReadFull(from, body); err != nil {
		return err
	}
	p := w.mesh.peers[w.peer]
	switch {
	case f.kind == frameBroken:
		p.board.set(stateBroken, int(int32(binary.LittleEndian.Uint32(body))), string(body[4:]))
	case p.byes.Add(1) == laneCount: // now all it sent is here
		p.board.set(stateLeft, w.peer, "")
	}
	w.mesh.wake()
	return nil
}

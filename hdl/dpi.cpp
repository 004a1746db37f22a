// SPDX-License-Identifier: BSD-2-Clause
//
// The functions that nonic_axis.sv, nonic_qp.sv and nonic_xgmii.sv call. Their C++ is C but for the
// vectors' type, svBitVecVal: words of 32 bits, the least first, as the port has them.
#include <svdpi.h>

#include <cstring>

#include "hdl/dpi.h"
#include "hdl/pair.h"
#include "hdl/port.h"

namespace {
struct Handle {
    hdl_attached *attached;
    hdl_port *port;
    hdl_out out;
};

// Only while a model is opened, which takes one thread.
thread_local hdl_attached *opening;

void *attach(int number, int width, bool xgmii)
{
    Handle *handle = new Handle();
    handle->attached = opening;
    if (opening != nullptr) {
        const char *scope = svGetNameFromScope(svGetScope());
        handle->port = opening->host->attach(opening->host->owner, static_cast<uint32_t>(number),
                                             static_cast<uint32_t>(width), xgmii,
                                             strlen(scope) < HDL_SCOPE_BYTES ? scope : "");
        opening->refused |= handle->port == nullptr;
    }
    return handle;
}

void edge(void *pointer, svBit rst, svBit s_valid, const svBitVecVal *s_data,
          const svBitVecVal *s_keep, svBit s_last, svBit s_user, svBit m_ready, svBit *s_ready,
          svBit *m_valid, svBitVecVal *m_data, svBitVecVal *m_keep, svBit *m_last, svBit *m_user,
          svBitVecVal *pause, svBitVecVal *tx_packet, svBitVecVal *rx_packet, unsigned width)
{
    Handle *handle = static_cast<Handle *>(pointer);
    hdl_out *out = &handle->out;
    if (handle->port != nullptr) {
        hdl_in in = {};
        in.s_data = s_data;
        in.s_keep = s_keep;
        in.reset = rst != 0;
        in.s_valid = s_valid != 0;
        in.s_last = s_last != 0;
        in.s_user = s_user != 0;
        in.m_ready = m_ready != 0;
        handle->attached->host->edge(handle->port, handle->attached->now_ps, &in, out);
    }
    *s_ready = out->s_ready;
    *m_valid = out->m_valid;
    *m_last = out->m_last;
    *m_user = out->m_user;
    *pause = out->pause;
    *tx_packet = out->sent_frame;
    *rx_packet = out->received_frame;
    memcpy(m_data, out->m_data, width / 8);
    memcpy(m_keep, out->m_keep, width / 8 < 32 ? 4 : width / 64);
}
} // namespace

extern "C" {

void hdl_attach_to(hdl_attached *attached)
{
    opening = attached;
}

void *nonic_attach(int number, int width)
{
    return attach(number, width, false);
}

void *nonic_xgmii_attach(int number)
{
    return attach(number, 64, true);
}

void nonic_detach(void *handle)
{
    delete static_cast<Handle *>(handle);
}

void *nonic_attach_pair(int number)
{
    if (opening == nullptr || opening->host->attach_pair == nullptr) {
        return new hdl_pair(); // Never connected.
    }
    hdl_pair *pair = opening->host->attach_pair(opening->host->owner, static_cast<uint32_t>(number));
    opening->refused |= pair == nullptr;
    return pair != nullptr ? pair : new hdl_pair();
}

void nonic_pair_edge(void *handle, const svBitVecVal *local_qpn, const svBitVecVal *local_psn,
                     const svBitVecVal *local_address, const svBitVecVal *local_rkey,
                     svBit *connected, svBitVecVal *local_ip, svBitVecVal *peer_ip,
                     svBitVecVal *peer_qpn, svBitVecVal *peer_address, svBitVecVal *peer_rkey,
                     svBitVecVal *send_psn, svBitVecVal *receive_psn, svBitVecVal *pmtu)
{
    hdl_pair *pair = static_cast<hdl_pair *>(handle);
    pair->local.qpn = *local_qpn;
    pair->local.psn = *local_psn;
    pair->local.address = static_cast<uint64_t>(local_address[1]) << 32 | local_address[0];
    pair->local.rkey = *local_rkey;
    *connected = hdl_pair_shows(pair);
    *local_ip = pair->local.ip;
    *peer_ip = pair->peer.ip;
    *peer_qpn = pair->peer.qpn;
    peer_address[0] = static_cast<svBitVecVal>(pair->peer.address);
    peer_address[1] = static_cast<svBitVecVal>(pair->peer.address >> 32);
    *peer_rkey = pair->peer.rkey;
    *send_psn = pair->send_psn;
    *receive_psn = pair->receive_psn;
    *pmtu = pair->pmtu;
}

#define NONIC_EDGE(W)                                                                              \
    void nonic_edge_##W(void *handle, svBit rst, svBit s_valid, const svBitVecVal *s_data,         \
                        const svBitVecVal *s_keep, svBit s_last, svBit s_user, svBit m_ready,      \
                        svBit *s_ready, svBit *m_valid, svBitVecVal *m_data, svBitVecVal *m_keep,  \
                        svBit *m_last, svBit *m_user, svBitVecVal *pause, svBitVecVal *tx_packet,  \
                        svBitVecVal *rx_packet)                                                    \
    {                                                                                              \
        edge(handle, rst, s_valid, s_data, s_keep, s_last, s_user, m_ready, s_ready, m_valid,      \
             m_data, m_keep, m_last, m_user, pause, tx_packet, rx_packet, W);                      \
    }
NONIC_EDGE(64)
NONIC_EDGE(128)
NONIC_EDGE(256)
NONIC_EDGE(512)
NONIC_EDGE(1024)

void nonic_xgmii_edge(void *pointer, svBit rst, const svBitVecVal *txd, const svBitVecVal *txc,
                      svBitVecVal *rxd, svBitVecVal *rxc, svBit *link_up, svBitVecVal *tx_packet,
                      svBitVecVal *rx_packet)
{
    svBit unused;
    svBitVecVal pause;
    edge(pointer, rst, 0, txd, txc, 0, 0, 0, &unused, &unused, rxd, rxc, &unused, &unused, &pause,
         tx_packet, rx_packet, 64);
    *link_up = static_cast<Handle *>(pointer)->out.link_up;
}
}

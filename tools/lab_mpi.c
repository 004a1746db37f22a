/* SPDX-License-Identifier: BSD-2-Clause
 *
 * nonic-mpi.so - the runs of a sweep spread over MPI ranks. Loaded only under mpirun, so that the
 * command does not depend on an MPI library otherwise.
 */
#include <mpi.h>

#include "base/check.h"
#include "tools/lab.h"

__attribute__((visibility("default"))) void lab_mpi_open(struct lab_ranks *ranks);

static int size;
static int rank;

static void gather(struct lab_run *runs, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const int owner = (int)(i % (uint32_t)size);
        if (owner == 0) {
            continue;
        }
        if (rank == owner) {
            MPI_Send(&runs[i], (int)sizeof(runs[i]), MPI_BYTE, 0, 0, MPI_COMM_WORLD);
        } else if (rank == 0) {
            MPI_Recv(&runs[i], (int)sizeof(runs[i]), MPI_BYTE, owner, 0, MPI_COMM_WORLD,
                     MPI_STATUS_IGNORE);
        }
    }
}

static void finish(void)
{
    MPI_Finalize();
}

void lab_mpi_open(struct lab_ranks *ranks)
{
    CHECK(MPI_Init(NULL, NULL) == MPI_SUCCESS);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    *ranks = (struct lab_ranks){.rank = rank, .size = size, .gather = gather, .finish = finish};
}

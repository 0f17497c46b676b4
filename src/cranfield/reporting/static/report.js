/* What a report does with its script on: tables sort, filter and export; charts tell their values; every query opens.
   Without this script the page reads the same. A report in one file has all these modules inside it. */

import { equipCharts } from "./report/charts.js";
import { equipFolded, keepUnfolded } from "./report/folded.js";
import { canOpen, startView } from "./report/query_view.js";
import { equipAll } from "./report/tables.js";

document.addEventListener("report:tables", equipAll);
equipAll();
equipCharts(canOpen);
equipFolded();
if (document.getElementById("query-view")) startView().then(keepUnfolded);
